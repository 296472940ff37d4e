from google.rpc import status_pb2 as _status_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProtectedKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROTECTED_KIND_UNSPECIFIED: _ClassVar[ProtectedKind]
    PROTECTED_KIND_PLACEHOLDER: _ClassVar[ProtectedKind]
    PROTECTED_KIND_ADDRESS: _ClassVar[ProtectedKind]
    PROTECTED_KIND_NUMBER: _ClassVar[ProtectedKind]
    PROTECTED_KIND_TAG: _ClassVar[ProtectedKind]

class LongSentences(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LONG_SENTENCES_UNSPECIFIED: _ClassVar[LongSentences]
    LONG_SENTENCES_SPLIT: _ClassVar[LongSentences]
    LONG_SENTENCES_REFUSE: _ClassVar[LongSentences]

class KeptKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KEPT_KIND_UNSPECIFIED: _ClassVar[KeptKind]
    KEPT_KIND_PLACEHOLDER: _ClassVar[KeptKind]
    KEPT_KIND_ADDRESS: _ClassVar[KeptKind]
    KEPT_KIND_NUMBER: _ClassVar[KeptKind]
    KEPT_KIND_TAG: _ClassVar[KeptKind]
    KEPT_KIND_SPAN: _ClassVar[KeptKind]
    KEPT_KIND_TERM: _ClassVar[KeptKind]
    KEPT_KIND_UNKNOWN: _ClassVar[KeptKind]

class FinishReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINISH_REASON_UNSPECIFIED: _ClassVar[FinishReason]
    FINISH_REASON_END_OF_SENTENCE: _ClassVar[FinishReason]
    FINISH_REASON_LENGTH_LIMIT: _ClassVar[FinishReason]

class Stopping(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STOPPING_UNSPECIFIED: _ClassVar[Stopping]
    STOPPING_BEST: _ClassVar[Stopping]
    STOPPING_FINISHED: _ClassVar[Stopping]

class LengthForm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LENGTH_FORM_UNSPECIFIED: _ClassVar[LengthForm]
    LENGTH_FORM_PLAIN: _ClassVar[LengthForm]
    LENGTH_FORM_WU: _ClassVar[LengthForm]
PROTECTED_KIND_UNSPECIFIED: ProtectedKind
PROTECTED_KIND_PLACEHOLDER: ProtectedKind
PROTECTED_KIND_ADDRESS: ProtectedKind
PROTECTED_KIND_NUMBER: ProtectedKind
PROTECTED_KIND_TAG: ProtectedKind
LONG_SENTENCES_UNSPECIFIED: LongSentences
LONG_SENTENCES_SPLIT: LongSentences
LONG_SENTENCES_REFUSE: LongSentences
KEPT_KIND_UNSPECIFIED: KeptKind
KEPT_KIND_PLACEHOLDER: KeptKind
KEPT_KIND_ADDRESS: KeptKind
KEPT_KIND_NUMBER: KeptKind
KEPT_KIND_TAG: KeptKind
KEPT_KIND_SPAN: KeptKind
KEPT_KIND_TERM: KeptKind
KEPT_KIND_UNKNOWN: KeptKind
FINISH_REASON_UNSPECIFIED: FinishReason
FINISH_REASON_END_OF_SENTENCE: FinishReason
FINISH_REASON_LENGTH_LIMIT: FinishReason
STOPPING_UNSPECIFIED: Stopping
STOPPING_BEST: Stopping
STOPPING_FINISHED: Stopping
LENGTH_FORM_UNSPECIFIED: LengthForm
LENGTH_FORM_PLAIN: LengthForm
LENGTH_FORM_WU: LengthForm

class TranslateRequest(_message.Message):
    __slots__ = ("contents", "mime_type", "source_language_code", "target_language_code", "model", "options", "include_attention", "text_options", "model_version", "include_token_scores", "include_alignment", "include_attention_heads")
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_ATTENTION_FIELD_NUMBER: _ClassVar[int]
    TEXT_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_TOKEN_SCORES_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_ATTENTION_HEADS_FIELD_NUMBER: _ClassVar[int]
    contents: _containers.RepeatedScalarFieldContainer[str]
    mime_type: str
    source_language_code: str
    target_language_code: str
    model: str
    options: DecodingOptions
    include_attention: bool
    text_options: TextOptions
    model_version: str
    include_token_scores: bool
    include_alignment: bool
    include_attention_heads: bool
    def __init__(self, contents: _Optional[_Iterable[str]] = ..., mime_type: _Optional[str] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., model: _Optional[str] = ..., options: _Optional[_Union[DecodingOptions, _Mapping]] = ..., include_attention: _Optional[bool] = ..., text_options: _Optional[_Union[TextOptions, _Mapping]] = ..., model_version: _Optional[str] = ..., include_token_scores: _Optional[bool] = ..., include_alignment: _Optional[bool] = ..., include_attention_heads: _Optional[bool] = ...) -> None: ...

class TextOptions(_message.Message):
    __slots__ = ("split_sentences", "long_sentences", "no_break_spaces", "protect", "protected_spans", "glossary")
    SPLIT_SENTENCES_FIELD_NUMBER: _ClassVar[int]
    LONG_SENTENCES_FIELD_NUMBER: _ClassVar[int]
    NO_BREAK_SPACES_FIELD_NUMBER: _ClassVar[int]
    PROTECT_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_SPANS_FIELD_NUMBER: _ClassVar[int]
    GLOSSARY_FIELD_NUMBER: _ClassVar[int]
    split_sentences: bool
    long_sentences: LongSentences
    no_break_spaces: bool
    protect: _containers.RepeatedScalarFieldContainer[ProtectedKind]
    protected_spans: _containers.RepeatedCompositeFieldContainer[ProtectedSpan]
    glossary: _containers.RepeatedCompositeFieldContainer[GlossaryTerm]
    def __init__(self, split_sentences: _Optional[bool] = ..., long_sentences: _Optional[_Union[LongSentences, str]] = ..., no_break_spaces: _Optional[bool] = ..., protect: _Optional[_Iterable[_Union[ProtectedKind, str]]] = ..., protected_spans: _Optional[_Iterable[_Union[ProtectedSpan, _Mapping]]] = ..., glossary: _Optional[_Iterable[_Union[GlossaryTerm, _Mapping]]] = ...) -> None: ...

class ProtectedSpan(_message.Message):
    __slots__ = ("index", "span")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SPAN_FIELD_NUMBER: _ClassVar[int]
    index: int
    span: Span
    def __init__(self, index: _Optional[int] = ..., span: _Optional[_Union[Span, _Mapping]] = ...) -> None: ...

class GlossaryTerm(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ...) -> None: ...

class TranslateResponse(_message.Message):
    __slots__ = ("translations",)
    TRANSLATIONS_FIELD_NUMBER: _ClassVar[int]
    translations: _containers.RepeatedCompositeFieldContainer[Translation]
    def __init__(self, translations: _Optional[_Iterable[_Union[Translation, _Mapping]]] = ...) -> None: ...

class TranslateStreamRequest(_message.Message):
    __slots__ = ("settings", "segment")
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    settings: TranslateStreamSettings
    segment: Segment
    def __init__(self, settings: _Optional[_Union[TranslateStreamSettings, _Mapping]] = ..., segment: _Optional[_Union[Segment, _Mapping]] = ...) -> None: ...

class TranslateStreamSettings(_message.Message):
    __slots__ = ("mime_type", "source_language_code", "target_language_code", "model", "options", "include_attention", "text_options", "model_version", "include_token_scores", "include_alignment", "include_attention_heads")
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_ATTENTION_FIELD_NUMBER: _ClassVar[int]
    TEXT_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_TOKEN_SCORES_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_ATTENTION_HEADS_FIELD_NUMBER: _ClassVar[int]
    mime_type: str
    source_language_code: str
    target_language_code: str
    model: str
    options: DecodingOptions
    include_attention: bool
    text_options: TextOptions
    model_version: str
    include_token_scores: bool
    include_alignment: bool
    include_attention_heads: bool
    def __init__(self, mime_type: _Optional[str] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., model: _Optional[str] = ..., options: _Optional[_Union[DecodingOptions, _Mapping]] = ..., include_attention: _Optional[bool] = ..., text_options: _Optional[_Union[TextOptions, _Mapping]] = ..., model_version: _Optional[str] = ..., include_token_scores: _Optional[bool] = ..., include_alignment: _Optional[bool] = ..., include_attention_heads: _Optional[bool] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ("id", "content", "options", "protected_spans")
    ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_SPANS_FIELD_NUMBER: _ClassVar[int]
    id: str
    content: str
    options: DecodingOptions
    protected_spans: _containers.RepeatedCompositeFieldContainer[Span]
    def __init__(self, id: _Optional[str] = ..., content: _Optional[str] = ..., options: _Optional[_Union[DecodingOptions, _Mapping]] = ..., protected_spans: _Optional[_Iterable[_Union[Span, _Mapping]]] = ...) -> None: ...

class TranslateStreamResponse(_message.Message):
    __slots__ = ("id", "translation", "error")
    ID_FIELD_NUMBER: _ClassVar[int]
    TRANSLATION_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    id: str
    translation: Translation
    error: _status_pb2.Status
    def __init__(self, id: _Optional[str] = ..., translation: _Optional[_Union[Translation, _Mapping]] = ..., error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ...) -> None: ...

class Translation(_message.Message):
    __slots__ = ("translated_text", "model", "model_version", "source_language_code", "target_language_code", "detected_language_code", "detection_confidence", "sentences", "passed_through", "kept_spans")
    TRANSLATED_TEXT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    DETECTED_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    DETECTION_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    SENTENCES_FIELD_NUMBER: _ClassVar[int]
    PASSED_THROUGH_FIELD_NUMBER: _ClassVar[int]
    KEPT_SPANS_FIELD_NUMBER: _ClassVar[int]
    translated_text: str
    model: str
    model_version: str
    source_language_code: str
    target_language_code: str
    detected_language_code: str
    detection_confidence: float
    sentences: _containers.RepeatedCompositeFieldContainer[Sentence]
    passed_through: bool
    kept_spans: _containers.RepeatedCompositeFieldContainer[KeptSpan]
    def __init__(self, translated_text: _Optional[str] = ..., model: _Optional[str] = ..., model_version: _Optional[str] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., detected_language_code: _Optional[str] = ..., detection_confidence: _Optional[float] = ..., sentences: _Optional[_Iterable[_Union[Sentence, _Mapping]]] = ..., passed_through: _Optional[bool] = ..., kept_spans: _Optional[_Iterable[_Union[KeptSpan, _Mapping]]] = ...) -> None: ...

class KeptSpan(_message.Message):
    __slots__ = ("source", "target", "kind")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    source: Span
    target: Span
    kind: KeptKind
    def __init__(self, source: _Optional[_Union[Span, _Mapping]] = ..., target: _Optional[_Union[Span, _Mapping]] = ..., kind: _Optional[_Union[KeptKind, str]] = ...) -> None: ...

class Sentence(_message.Message):
    __slots__ = ("source", "target", "source_token_count", "hypotheses", "is_part", "passed_through")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    HYPOTHESES_FIELD_NUMBER: _ClassVar[int]
    IS_PART_FIELD_NUMBER: _ClassVar[int]
    PASSED_THROUGH_FIELD_NUMBER: _ClassVar[int]
    source: Span
    target: Span
    source_token_count: int
    hypotheses: _containers.RepeatedCompositeFieldContainer[Hypothesis]
    is_part: bool
    passed_through: bool
    def __init__(self, source: _Optional[_Union[Span, _Mapping]] = ..., target: _Optional[_Union[Span, _Mapping]] = ..., source_token_count: _Optional[int] = ..., hypotheses: _Optional[_Iterable[_Union[Hypothesis, _Mapping]]] = ..., is_part: _Optional[bool] = ..., passed_through: _Optional[bool] = ...) -> None: ...

class Span(_message.Message):
    __slots__ = ("begin", "end")
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    begin: int
    end: int
    def __init__(self, begin: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class Hypothesis(_message.Message):
    __slots__ = ("text", "log_prob", "score", "finish_reason", "target_token_count", "attention", "token_scores", "alignment")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LOG_PROB_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_FIELD_NUMBER: _ClassVar[int]
    TOKEN_SCORES_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    text: str
    log_prob: float
    score: float
    finish_reason: FinishReason
    target_token_count: int
    attention: Attention
    token_scores: TokenScores
    alignment: Alignment
    def __init__(self, text: _Optional[str] = ..., log_prob: _Optional[float] = ..., score: _Optional[float] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., target_token_count: _Optional[int] = ..., attention: _Optional[_Union[Attention, _Mapping]] = ..., token_scores: _Optional[_Union[TokenScores, _Mapping]] = ..., alignment: _Optional[_Union[Alignment, _Mapping]] = ...) -> None: ...

class TokenScores(_message.Message):
    __slots__ = ("tokens", "log_probs")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    LOG_PROBS_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedCompositeFieldContainer[Token]
    log_probs: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, tokens: _Optional[_Iterable[_Union[Token, _Mapping]]] = ..., log_probs: _Optional[_Iterable[float]] = ...) -> None: ...

class Alignment(_message.Message):
    __slots__ = ("source_words", "target_words", "pairs", "pharaoh")
    SOURCE_WORDS_FIELD_NUMBER: _ClassVar[int]
    TARGET_WORDS_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    PHARAOH_FIELD_NUMBER: _ClassVar[int]
    source_words: _containers.RepeatedCompositeFieldContainer[Span]
    target_words: _containers.RepeatedCompositeFieldContainer[Span]
    pairs: _containers.RepeatedCompositeFieldContainer[WordPair]
    pharaoh: str
    def __init__(self, source_words: _Optional[_Iterable[_Union[Span, _Mapping]]] = ..., target_words: _Optional[_Iterable[_Union[Span, _Mapping]]] = ..., pairs: _Optional[_Iterable[_Union[WordPair, _Mapping]]] = ..., pharaoh: _Optional[str] = ...) -> None: ...

class WordPair(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: int
    target: int
    def __init__(self, source: _Optional[int] = ..., target: _Optional[int] = ...) -> None: ...

class Attention(_message.Message):
    __slots__ = ("source_tokens", "target_tokens", "num_heads", "num_targets", "num_sources", "weights")
    SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    NUM_HEADS_FIELD_NUMBER: _ClassVar[int]
    NUM_TARGETS_FIELD_NUMBER: _ClassVar[int]
    NUM_SOURCES_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    source_tokens: _containers.RepeatedCompositeFieldContainer[Token]
    target_tokens: _containers.RepeatedCompositeFieldContainer[Token]
    num_heads: int
    num_targets: int
    num_sources: int
    weights: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, source_tokens: _Optional[_Iterable[_Union[Token, _Mapping]]] = ..., target_tokens: _Optional[_Iterable[_Union[Token, _Mapping]]] = ..., num_heads: _Optional[int] = ..., num_targets: _Optional[int] = ..., num_sources: _Optional[int] = ..., weights: _Optional[_Iterable[float]] = ...) -> None: ...

class Token(_message.Message):
    __slots__ = ("text", "begin", "end")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    text: str
    begin: int
    end: int
    def __init__(self, text: _Optional[str] = ..., begin: _Optional[int] = ..., end: _Optional[int] = ...) -> None: ...

class DecodingOptions(_message.Message):
    __slots__ = ("beam_size", "num_hypotheses", "length_penalty", "max_length", "max_length_ratio", "stopping", "patience", "shortlist", "length_form", "coverage_penalty", "min_length", "min_length_ratio", "repetition_penalty", "no_repeat_ngram_size", "suppress_sequences", "prefix", "prefix_bias_beta", "return_alternatives", "min_alternative_prob", "sampling_temperature", "sampling_top_k", "sampling_top_p", "sampling_seed", "forbid_unknown")
    BEAM_SIZE_FIELD_NUMBER: _ClassVar[int]
    NUM_HYPOTHESES_FIELD_NUMBER: _ClassVar[int]
    LENGTH_PENALTY_FIELD_NUMBER: _ClassVar[int]
    MAX_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MAX_LENGTH_RATIO_FIELD_NUMBER: _ClassVar[int]
    STOPPING_FIELD_NUMBER: _ClassVar[int]
    PATIENCE_FIELD_NUMBER: _ClassVar[int]
    SHORTLIST_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FORM_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_PENALTY_FIELD_NUMBER: _ClassVar[int]
    MIN_LENGTH_FIELD_NUMBER: _ClassVar[int]
    MIN_LENGTH_RATIO_FIELD_NUMBER: _ClassVar[int]
    REPETITION_PENALTY_FIELD_NUMBER: _ClassVar[int]
    NO_REPEAT_NGRAM_SIZE_FIELD_NUMBER: _ClassVar[int]
    SUPPRESS_SEQUENCES_FIELD_NUMBER: _ClassVar[int]
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    PREFIX_BIAS_BETA_FIELD_NUMBER: _ClassVar[int]
    RETURN_ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    MIN_ALTERNATIVE_PROB_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_TOP_K_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_TOP_P_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_SEED_FIELD_NUMBER: _ClassVar[int]
    FORBID_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    beam_size: int
    num_hypotheses: int
    length_penalty: float
    max_length: int
    max_length_ratio: float
    stopping: Stopping
    patience: float
    shortlist: bool
    length_form: LengthForm
    coverage_penalty: float
    min_length: int
    min_length_ratio: float
    repetition_penalty: float
    no_repeat_ngram_size: int
    suppress_sequences: _containers.RepeatedScalarFieldContainer[str]
    prefix: str
    prefix_bias_beta: float
    return_alternatives: bool
    min_alternative_prob: float
    sampling_temperature: float
    sampling_top_k: int
    sampling_top_p: float
    sampling_seed: int
    forbid_unknown: bool
    def __init__(self, beam_size: _Optional[int] = ..., num_hypotheses: _Optional[int] = ..., length_penalty: _Optional[float] = ..., max_length: _Optional[int] = ..., max_length_ratio: _Optional[float] = ..., stopping: _Optional[_Union[Stopping, str]] = ..., patience: _Optional[float] = ..., shortlist: _Optional[bool] = ..., length_form: _Optional[_Union[LengthForm, str]] = ..., coverage_penalty: _Optional[float] = ..., min_length: _Optional[int] = ..., min_length_ratio: _Optional[float] = ..., repetition_penalty: _Optional[float] = ..., no_repeat_ngram_size: _Optional[int] = ..., suppress_sequences: _Optional[_Iterable[str]] = ..., prefix: _Optional[str] = ..., prefix_bias_beta: _Optional[float] = ..., return_alternatives: _Optional[bool] = ..., min_alternative_prob: _Optional[float] = ..., sampling_temperature: _Optional[float] = ..., sampling_top_k: _Optional[int] = ..., sampling_top_p: _Optional[float] = ..., sampling_seed: _Optional[int] = ..., forbid_unknown: _Optional[bool] = ...) -> None: ...

class ScoreRequest(_message.Message):
    __slots__ = ("pairs", "source_language_code", "target_language_code", "model", "model_version", "include_attention", "include_attention_heads", "length_penalty", "length_form", "coverage_penalty")
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_ATTENTION_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_ATTENTION_HEADS_FIELD_NUMBER: _ClassVar[int]
    LENGTH_PENALTY_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FORM_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_PENALTY_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[SentencePair]
    source_language_code: str
    target_language_code: str
    model: str
    model_version: str
    include_attention: bool
    include_attention_heads: bool
    length_penalty: float
    length_form: LengthForm
    coverage_penalty: float
    def __init__(self, pairs: _Optional[_Iterable[_Union[SentencePair, _Mapping]]] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., model: _Optional[str] = ..., model_version: _Optional[str] = ..., include_attention: _Optional[bool] = ..., include_attention_heads: _Optional[bool] = ..., length_penalty: _Optional[float] = ..., length_form: _Optional[_Union[LengthForm, str]] = ..., coverage_penalty: _Optional[float] = ...) -> None: ...

class SentencePair(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ...) -> None: ...

class ScoreResponse(_message.Message):
    __slots__ = ("scores", "model", "model_version")
    SCORES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    scores: _containers.RepeatedCompositeFieldContainer[PairScore]
    model: str
    model_version: str
    def __init__(self, scores: _Optional[_Iterable[_Union[PairScore, _Mapping]]] = ..., model: _Optional[str] = ..., model_version: _Optional[str] = ...) -> None: ...

class PairScore(_message.Message):
    __slots__ = ("log_prob", "score", "token_scores", "source_token_count", "target_token_count", "attention")
    LOG_PROB_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_SCORES_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    ATTENTION_FIELD_NUMBER: _ClassVar[int]
    log_prob: float
    score: float
    token_scores: TokenScores
    source_token_count: int
    target_token_count: int
    attention: Attention
    def __init__(self, log_prob: _Optional[float] = ..., score: _Optional[float] = ..., token_scores: _Optional[_Union[TokenScores, _Mapping]] = ..., source_token_count: _Optional[int] = ..., target_token_count: _Optional[int] = ..., attention: _Optional[_Union[Attention, _Mapping]] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("models", "default_model", "limits")
    MODELS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_MODEL_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[Model]
    default_model: str
    limits: Limits
    def __init__(self, models: _Optional[_Iterable[_Union[Model, _Mapping]]] = ..., default_model: _Optional[str] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ("name", "version", "source_language_code", "target_language_code", "architecture", "precision", "max_source_tokens", "preferred_source_tokens", "max_target_tokens", "default_options")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    ARCHITECTURE_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    MAX_SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    source_language_code: str
    target_language_code: str
    architecture: str
    precision: str
    max_source_tokens: int
    preferred_source_tokens: int
    max_target_tokens: int
    default_options: DecodingOptions
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., architecture: _Optional[str] = ..., precision: _Optional[str] = ..., max_source_tokens: _Optional[int] = ..., preferred_source_tokens: _Optional[int] = ..., max_target_tokens: _Optional[int] = ..., default_options: _Optional[_Union[DecodingOptions, _Mapping]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("max_contents", "max_message_bytes", "max_beam_size", "default_deadline_seconds", "max_characters", "max_content_characters", "max_deadline_seconds")
    MAX_CONTENTS_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_BEAM_SIZE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_DEADLINE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MAX_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    MAX_CONTENT_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    MAX_DEADLINE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    max_contents: int
    max_message_bytes: int
    max_beam_size: int
    default_deadline_seconds: float
    max_characters: int
    max_content_characters: int
    max_deadline_seconds: float
    def __init__(self, max_contents: _Optional[int] = ..., max_message_bytes: _Optional[int] = ..., max_beam_size: _Optional[int] = ..., default_deadline_seconds: _Optional[float] = ..., max_characters: _Optional[int] = ..., max_content_characters: _Optional[int] = ..., max_deadline_seconds: _Optional[float] = ...) -> None: ...
