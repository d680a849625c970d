// Hides the values of credentials in messages. Pure function; thread-safe.
#pragma once

#include "base/text/text_mask.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

// Returns a mask of all that is secret of them, as libraries and stores may write it: also of a
// shared access signature its signature alone, which is in addresses.
base::TextMask MaskOf(const Credentials& credentials);

}  // namespace tutti::storage
