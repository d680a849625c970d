// Keeps the signatures of a job's inputs by http or https out of the job (decision 062).
#pragma once

#include "absl/status/status.h"
#include "platform/service/secrets/secrets.h"
#include "platform/store/store.h"

namespace tutti::service {

// Makes each signature of the job's file and of its inputs, and of those of its steps, a secret of
// the service, whose name stands there instead; those that they name already are kept for as long
// as if the job had brought them. InvalidArgument if the file's text has one of them where it
// cannot be replaced; else errors are those of Secrets::SetSecret and RenewSignatures. Thread-safe.
absl::Status KeepSignatures(Secrets& secrets, store::Job& job);

}  // namespace tutti::service
