from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FolderOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FOLDER_OUTCOME_UNSPECIFIED: _ClassVar[FolderOutcome]
    FOLDER_OUTCOME_UNCHANGED: _ClassVar[FolderOutcome]
    FOLDER_OUTCOME_LOADED: _ClassVar[FolderOutcome]
    FOLDER_OUTCOME_UNLOADED: _ClassVar[FolderOutcome]
    FOLDER_OUTCOME_FAILED: _ClassVar[FolderOutcome]

class BundleState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BUNDLE_STATE_UNSPECIFIED: _ClassVar[BundleState]
    BUNDLE_STATE_LOADING: _ClassVar[BundleState]
    BUNDLE_STATE_SERVING: _ClassVar[BundleState]
    BUNDLE_STATE_RETIRING: _ClassVar[BundleState]
    BUNDLE_STATE_FAILED: _ClassVar[BundleState]
    BUNDLE_STATE_UNLOADED: _ClassVar[BundleState]
FOLDER_OUTCOME_UNSPECIFIED: FolderOutcome
FOLDER_OUTCOME_UNCHANGED: FolderOutcome
FOLDER_OUTCOME_LOADED: FolderOutcome
FOLDER_OUTCOME_UNLOADED: FolderOutcome
FOLDER_OUTCOME_FAILED: FolderOutcome
BUNDLE_STATE_UNSPECIFIED: BundleState
BUNDLE_STATE_LOADING: BundleState
BUNDLE_STATE_SERVING: BundleState
BUNDLE_STATE_RETIRING: BundleState
BUNDLE_STATE_FAILED: BundleState
BUNDLE_STATE_UNLOADED: BundleState

class ReloadRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReloadResponse(_message.Message):
    __slots__ = ("changes",)
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[FolderChange]
    def __init__(self, changes: _Optional[_Iterable[_Union[FolderChange, _Mapping]]] = ...) -> None: ...

class FolderChange(_message.Message):
    __slots__ = ("folder", "outcome", "model", "version", "reason")
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    folder: str
    outcome: FolderOutcome
    model: str
    version: str
    reason: str
    def __init__(self, folder: _Optional[str] = ..., outcome: _Optional[_Union[FolderOutcome, str]] = ..., model: _Optional[str] = ..., version: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ListBundlesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListBundlesResponse(_message.Message):
    __slots__ = ("bundles",)
    BUNDLES_FIELD_NUMBER: _ClassVar[int]
    bundles: _containers.RepeatedCompositeFieldContainer[Bundle]
    def __init__(self, bundles: _Optional[_Iterable[_Union[Bundle, _Mapping]]] = ...) -> None: ...

class Bundle(_message.Message):
    __slots__ = ("folder", "model", "version", "state", "reason")
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    folder: str
    model: str
    version: str
    state: BundleState
    reason: str
    def __init__(self, folder: _Optional[str] = ..., model: _Optional[str] = ..., version: _Optional[str] = ..., state: _Optional[_Union[BundleState, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class UnloadRequest(_message.Message):
    __slots__ = ("model", "version")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: str
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class UnloadResponse(_message.Message):
    __slots__ = ("bundle",)
    BUNDLE_FIELD_NUMBER: _ClassVar[int]
    bundle: Bundle
    def __init__(self, bundle: _Optional[_Union[Bundle, _Mapping]] = ...) -> None: ...
