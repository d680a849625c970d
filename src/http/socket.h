// Socket is a connected TCP socket, with or without TLS, whose every read and write ends: by a
// deadline for the whole, by a limit on how long no byte may move, because a second descriptor (an
// eventfd) says stop, or at once, if the socket is not to wait. It satisfies Beast's SyncReadStream
// and SyncWriteStream. Internal to this room. Used by one thread at a time.
#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/unique_fd.h"
#include "http/tls.h"

namespace tutti::http {

class Socket {
 public:
  // Makes the descriptor non-blocking and sets TCP_NODELAY. All ends when `stop_fd` (-1 for none)
  // becomes readable.
  Socket(base::UniqueFd fd, int stop_fd);

  // Sets the limits of all reads and writes until it is called again.
  void Limit(std::optional<base::Deadline> whole, absl::Duration stall);
  // With false, a call that would wait returns would_block instead; it is to be repeated once the
  // descriptor has what Wanted() says.
  void SetWaiting(bool waits) { waits_ = waits; }
  short Wanted() const { return wanted_; }  // POLLIN or POLLOUT

  // Speaks TLS from here on, with a server that Tls::Connect trusts. The limits hold.
  absl::Status ConnectTls(const std::string& host, const std::string& certificate);
  // Does the same as the server. Returns protocol_error, with nothing read or written, if the
  // client does not begin TLS.
  boost::system::error_code AcceptTls(const Identity& identity);
  // Tells the other side that nothing more will be written.
  void EndWriting();

  // With true, the kernel may hold back what is written until more follows (MSG_MORE), so that a
  // header and a small body leave in one packet.
  void ExpectMore(bool more) { more_ = more; }

  // Returns whether there is something to read, or the end of the connection.
  bool HasData() const;
  // Waits for POLLIN or POLLOUT. Returns timed_out, or operation_aborted when `stop_fd` says stop.
  boost::system::error_code Await(short events);
  // Returns whether the other side has closed or broken the connection.
  bool PeerHasGone() const;
  int fd() const { return fd_.get(); }
  // Returns the descriptor, still open, to the caller.
  int Release() { return fd_.release(); }

  size_t Read(void* data, size_t size, boost::system::error_code& error);
  size_t Write(iovec* pieces, size_t count, boost::system::error_code& error);
  // Writes as much as the connection takes at once; with TLS as one record. After would_block it
  // must be called again with the same bytes.
  size_t WriteSome(absl::string_view bytes, boost::system::error_code& error);

  template <class Buffers>
  size_t read_some(const Buffers& buffers, boost::system::error_code& error) {
    for (auto b = boost::asio::buffer_sequence_begin(buffers);
         b != boost::asio::buffer_sequence_end(buffers); ++b) {
      const boost::asio::mutable_buffer buffer(*b);
      if (buffer.size() > 0) return Read(buffer.data(), buffer.size(), error);
    }
    error = {};
    return 0;
  }
  // Beast passes a header as many small buffers, which are written with one system call.
  template <class Buffers>
  size_t write_some(const Buffers& buffers, boost::system::error_code& error) {
    iovec pieces[64];
    size_t count = 0;
    for (auto b = boost::asio::buffer_sequence_begin(buffers);
         b != boost::asio::buffer_sequence_end(buffers) && count < std::size(pieces); ++b) {
      const boost::asio::const_buffer buffer(*b);
      if (buffer.size() > 0) pieces[count++] = {const_cast<void*>(buffer.data()), buffer.size()};
    }
    return Write(pieces, count, error);
  }
  template <class Buffers>
  size_t read_some(const Buffers& buffers) {
    boost::system::error_code error;
    const size_t n = read_some(buffers, error);
    if (error) throw boost::system::system_error(error);
    return n;
  }
  template <class Buffers>
  size_t write_some(const Buffers& buffers) {
    boost::system::error_code error;
    const size_t n = write_some(buffers, error);
    if (error) throw boost::system::system_error(error);
    return n;
  }

 private:
  // Returns the deadline of a read or write that begins now.
  std::optional<base::Deadline> End() const;
  boost::system::error_code AwaitUntil(std::optional<base::Deadline> end, short events);
  absl::Status Handshake(std::unique_ptr<Tls> tls, absl::string_view peer);
  size_t WriteByTls(const iovec* pieces, size_t count, boost::system::error_code& error);
  // Repeats a step of TLS until it is done, and returns its bytes; or 0 with an error.
  size_t Finish(const std::function<Tls::Step()>& step, boost::system::error_code& error);

  base::UniqueFd fd_;
  std::unique_ptr<Tls> tls_;
  std::unique_ptr<Tls> accepting_;
  std::string record_;  // what TLS sends next
  int stop_fd_;
  bool waits_ = true;
  short wanted_ = 0;
  bool more_ = false;
  std::optional<base::Deadline> whole_;
  absl::Duration stall_ = absl::InfiniteDuration();
};

}  // namespace tutti::http
