"""Values of enums on the wire, and what they stand for."""

from service.decoding import FinishReason, LengthForm, Stopping
from service.pb import translation_pb2 as pb
from service.text.protect import Kind
from service.translator import LongSentences

FINISH_REASONS = {
    FinishReason.END_OF_SENTENCE: pb.FINISH_REASON_END_OF_SENTENCE,
    FinishReason.LENGTH_LIMIT: pb.FINISH_REASON_LENGTH_LIMIT,
}
STOPPING = {Stopping.BEST: pb.STOPPING_BEST, Stopping.FINISHED: pb.STOPPING_FINISHED}
LENGTH_FORMS = {LengthForm.PLAIN: pb.LENGTH_FORM_PLAIN, LengthForm.WU: pb.LENGTH_FORM_WU}
KINDS = {
    pb.PROTECTED_KIND_PLACEHOLDER: Kind.PLACEHOLDER,
    pb.PROTECTED_KIND_ADDRESS: Kind.ADDRESS,
    pb.PROTECTED_KIND_NUMBER: Kind.NUMBER,
    pb.PROTECTED_KIND_TAG: Kind.TAG,
}
KEPT_KINDS = {
    Kind.PLACEHOLDER: pb.KEPT_KIND_PLACEHOLDER,
    Kind.ADDRESS: pb.KEPT_KIND_ADDRESS,
    Kind.NUMBER: pb.KEPT_KIND_NUMBER,
    Kind.TAG: pb.KEPT_KIND_TAG,
    Kind.SPAN: pb.KEPT_KIND_SPAN,
    Kind.TERM: pb.KEPT_KIND_TERM,
    Kind.UNKNOWN: pb.KEPT_KIND_UNKNOWN,
}
LONG_SENTENCES = {
    pb.LONG_SENTENCES_UNSPECIFIED: LongSentences.SPLIT,
    pb.LONG_SENTENCES_SPLIT: LongSentences.SPLIT,
    pb.LONG_SENTENCES_REFUSE: LongSentences.REFUSE,
}
