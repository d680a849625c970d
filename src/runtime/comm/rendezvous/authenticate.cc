#include "runtime/comm/rendezvous/authenticate.h"

#include <openssl/rand.h>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::comm {
namespace {

constexpr absl::string_view kMagic = "tutti-comm\n";
constexpr size_t kNonceBytes = 32;
constexpr size_t kProofBytes = 32;
constexpr size_t kPreambleBytes = kMagic.size() + 4 + kNonceBytes;

absl::StatusOr<std::string> Nonce() {
  std::string nonce(kNonceBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), kNonceBytes) != 1) {
    return absl::InternalError("the system gives no random bytes");
  }
  return nonce;
}

std::string Preamble(absl::string_view nonce) {
  std::string preamble(kMagic);
  for (int i = 0; i < 4; ++i) preamble += static_cast<char>(kProtocolVersion >> (8 * i));
  return absl::StrCat(preamble, nonce);
}

// The nonce in the other side's preamble.
absl::StatusOr<std::string> NonceOf(absl::string_view preamble) {
  if (preamble.substr(0, kMagic.size()) != kMagic) {
    return absl::InvalidArgumentError("the other side is not a rank of tutti");
  }
  uint32_t version = 0;
  for (int i = 3; i >= 0; --i) {
    version = version << 8 | static_cast<uint8_t>(preamble[kMagic.size() + i]);
  }
  if (version != kProtocolVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the other side speaks version ", version, " of tutti's protocol, this one ",
                     kProtocolVersion, ": run the same build of tutti on every node"));
  }
  return std::string(preamble.substr(kMagic.size() + 4));
}

std::string Proof(absl::string_view token, absl::string_view label, absl::string_view purpose,
                  absl::string_view opener_nonce, absl::string_view listener_nonce) {
  // The nonces are of fixed length and last, so no two inputs give the same text.
  const base::Sha256Digest digest = base::HmacSha256(
      token, absl::StrCat(label, "\n", purpose, "\n", opener_nonce, listener_nonce));
  return std::string(digest.begin(), digest.end());
}

absl::Status Check(absl::string_view proof, absl::string_view expected) {
  if (base::EqualInConstantTime(proof, expected)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "the other side does not know this job's token (TUTTI_JOB_TOKEN)");
}

absl::Status Open(int fd, absl::string_view token, absl::string_view purpose,
                  const Patience& patience) {
  TUTTI_ASSIGN_OR_RETURN(const std::string own, Nonce());
  TUTTI_RETURN_IF_ERROR(Send(fd, Preamble(own), patience));
  TUTTI_ASSIGN_OR_RETURN(const std::string preamble, Receive(fd, kPreambleBytes, patience));
  TUTTI_ASSIGN_OR_RETURN(const std::string other, NonceOf(preamble));
  TUTTI_ASSIGN_OR_RETURN(const std::string proof, Receive(fd, kProofBytes, patience));
  TUTTI_RETURN_IF_ERROR(Check(proof, Proof(token, "listener", purpose, own, other)));
  return Send(fd, Proof(token, "opener", purpose, own, other), patience);
}

absl::Status Answer(int fd, absl::string_view token, absl::string_view purpose,
                    const Patience& patience) {
  TUTTI_ASSIGN_OR_RETURN(const std::string own, Nonce());
  TUTTI_ASSIGN_OR_RETURN(const std::string preamble, Receive(fd, kPreambleBytes, patience));
  const absl::StatusOr<std::string> other = NonceOf(preamble);
  if (!other.ok()) {
    // So that an opener of another version can say so.
    Send(fd, Preamble(own), patience).IgnoreError();
    return other.status();
  }
  TUTTI_RETURN_IF_ERROR(
      Send(fd, Preamble(own) + Proof(token, "listener", purpose, *other, own), patience));
  const absl::StatusOr<std::string> proof = Receive(fd, kProofBytes, patience);
  if (!proof.ok() && absl::IsUnavailable(proof.status())) return Check("", "proof");
  TUTTI_RETURN_IF_ERROR(proof.status());
  return Check(*proof, Proof(token, "opener", purpose, *other, own));
}

}  // namespace

absl::Status Authenticate(int fd, Side side, absl::string_view token, absl::string_view purpose,
                          const Patience& patience) {
  return side == Side::kOpener ? Open(fd, token, purpose, patience)
                               : Answer(fd, token, purpose, patience);
}

}  // namespace tutti::comm
