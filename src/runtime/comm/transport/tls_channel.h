// TlsChannel is a Channel over TLS 1.3 on a connected stream socket: what travels cannot be read or
// changed on its way. There are no certificates. Both sides derive a pre-shared key from the job's
// token (HKDF, RFC 5869, with a label, so that the key says nothing about proofs made with the
// token), and the handshake succeeds only between two that have it; the ephemeral keys besides
// (psk_dhe_ke) keep what was recorded secret even from who learns the token later.
//
// OpenSSL never touches the socket. It writes records into one bounded ring and reads them from
// another; the channel moves the rings' bytes to and from the socket, as many records as there are
// in one call and without a copy of its own. A record is made only when the ring has room for all
// of it, so that bytes are taken whole and may be changed at once, and taking never waits for
// sending: TLS 1.3 has no message that must be answered in order to read on (a key update is asked
// of nobody). What is left in the ring when the socket is full goes with Flush.
#pragma once

#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <memory>

#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "runtime/comm/rendezvous/authenticate.h"
#include "runtime/comm/transport/staged_channel.h"

namespace tutti::comm {

class TlsChannel final : public StagedChannel {
 public:
  // After this many bytes a side changes to a new key: an AES-GCM key is good for 2^24.5 records
  // (RFC 8446, 5.5), which 10 Gbit/s reach within minutes.
  static constexpr uint64_t kBytesPerKey = uint64_t{64} << 30;

  // Makes a channel over a non-blocking socket. PermissionDenied when the other side has another
  // token or answers with something else than TLS.
  static absl::StatusOr<std::unique_ptr<Channel>> Make(base::UniqueFd socket, Side side,
                                                       absl::string_view token,
                                                       const Patience& patience,
                                                       uint64_t bytes_per_key = kBytesPerKey);

  absl::StatusOr<size_t> TrySend(std::span<const std::byte> bytes) override;
  absl::StatusOr<bool> Flush() override;
  int fd() const override { return socket_.get(); }
  void Wake() override {}
  bool IsCheapToWatch() const override { return false; }

 protected:
  absl::StatusOr<size_t> ReceiveInto(std::span<std::byte> bytes) override;
  short PrepareTransportToSleep(bool to_send, bool to_receive) override;

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
    void operator()(BIO* bio) const { BIO_free(bio); }
  };

  TlsChannel(base::UniqueFd socket, std::unique_ptr<SSL, FreeSsl> ssl,
             std::unique_ptr<BIO, FreeSsl> wire, uint64_t bytes_per_key);
  static absl::StatusOr<std::unique_ptr<TlsChannel>> Prepare(base::UniqueFd socket, Side side,
                                                             absl::string_view token,
                                                             uint64_t bytes_per_key);
  absl::Status Handshake(const Patience& patience);
  absl::StatusOr<bool> Fill();
  absl::Status ChangeKeyInTime(size_t bytes);

  base::UniqueFd socket_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  std::unique_ptr<BIO, FreeSsl> wire_;  // the socket's end of both rings
  const uint64_t bytes_per_key_;
  uint64_t sent_with_key_ = 0;
};

}  // namespace tutti::comm
