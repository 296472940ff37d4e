"""Generated from proto/nmt/v1/translation.proto by `make proto`; never edited by hand."""
