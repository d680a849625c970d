// Reads what a store says of an object beside its bytes. Pure function.
#pragma once

#include <functional>
#include <string>

#include "platform/storage/objects/checksum.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

// Returns the value of a header, or of a field that Arrow makes of one; "" if there is none.
using HeaderLookup = std::function<std::string(const char* name)>;

// Sets etag, md5 and modified of the object, those that the headers tell. The version of an object
// of Google's is its generation, since its ETag changes with what is said of it, too. The MD5 is
// Azure's or Google's own, else an ETag that can be one, as of S3. A value that is no such thing,
// or too long, is left out.
void TakeHeaders(const HeaderLookup& header, StoredObject& object);

// Returns the checksum of the whole object that S3 tells in x-amz-checksum-*, the strongest of
// several; none where there is none, or one of its parts' checksums alone ("…-3"), as it may be of
// an object that went up in parts unless it says that it is of the whole. Names are in lower case.
Checksum ChecksumIn(const HeaderLookup& header);

// GoogleHashes is what Google's storage reports in x-goog-hash ("crc32c=n03x6A==,
// md5=Ojk9c3dhfxgoKVVHYwFbHQ==") about the content as it is sent. It is empty for an object that is
// stored compressed and may be sent in another form. A composed object has no MD5.
struct GoogleHashes {
  Checksum checksum;  // CRC-32C
  std::string md5;    // hexadecimal; "": none
};
GoogleHashes GoogleHashesIn(const HeaderLookup& header);

}  // namespace tutti::storage
