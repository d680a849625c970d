// One launcher as a service sees it: a TLS connection that stays, reports, the wait for go, output,
// code (docs/formats/launcher-calls.md). A call whose connection breaks is repeated over another
// one, after the pauses that a launcher makes. All launchers run on one io_context and one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "absl/time/time.h"

namespace tutti::swarm {

// What all launchers share.
struct Gang {
  using Endpoint = boost::asio::ip::tcp::endpoint;
  boost::asio::io_context& loop;
  boost::asio::ssl::context& tls;
  std::function<Endpoint()> find_service;  // where it is now; asked again after a break
  Endpoint service;
  std::string token, allocation;
  int broken = 0;    // attempts that are made again: no connection, or no answer, or an outage's
  int failures = 0;  // answers that are final and no success
  std::mt19937 random{1};
};

class Launcher {
 public:
  using Done = std::function<void()>;
  Launcher(Gang& gang, int node) : gang_(gang), node_(node), pause_timer_(gang.loop) {}

  // Each calls `done` once the service has answered; one at a time.
  void Connect(Done done);
  void Report(const std::string& lines, int first, Done done);
  void Poll(int seconds, Done done);  // asks once for go, and waits so long for it
  void AwaitGo(Done done);            // asks again until it is told to go
  void Print(const std::string& text, Done done);
  void Fetch(const std::string& snapshot, Done done);

  int connections() const { return connections_; }

 private:
  using Stream = boost::beast::ssl_stream<boost::beast::tcp_stream>;
  using Answer = std::function<void(const std::string& body)>;
  std::string OfNode(const std::string& rest) const;
  // `rest` is the target behind the allocation.
  void Call(const std::string& method, const std::string& rest, const std::string& body,
            Answer answer);
  void Send();
  void Hear();
  // Calls `then` once there is a connection, also after those that break meanwhile.
  void Open(Done then);
  void ComeAgain();

  Gang& gang_;
  const int node_;
  int connections_ = 0;
  uint64_t printed_ = 0;
  std::unique_ptr<Stream> stream_;
  Done then_;
  Answer answer_;
  absl::Duration pause_ = absl::Milliseconds(20);
  boost::asio::steady_timer pause_timer_;
  boost::beast::flat_buffer buffer_;
  boost::beast::http::request<boost::beast::http::string_body> request_;
  boost::beast::http::response<boost::beast::http::string_body> response_;
};

}  // namespace tutti::swarm
