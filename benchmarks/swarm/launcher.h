// One launcher as a service sees it: a TLS connection that stays, reports, the wait for go, output
// (docs/formats/launcher-calls.md). All launchers run on one io_context and one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"

namespace tutti::swarm {

// What all launchers share.
struct Gang {
  boost::asio::io_context& loop;
  boost::asio::ssl::context& tls;
  boost::asio::ip::tcp::endpoint service;
  std::string token, allocation;
  int failures = 0;  // connections that broke, answers other than 2xx
};

class Launcher {
 public:
  using Done = std::function<void()>;
  Launcher(Gang& gang, int node) : gang_(gang), node_(node) {}

  // Each calls `done` once the service has answered; one at a time.
  void Connect(Done done);
  void Report(const std::string& lines, int first, Done done);
  void AwaitGo(Done done);  // asks again until it is told to go
  void Print(const std::string& text, Done done);

  int connections() const { return connections_; }

 private:
  using Stream = boost::beast::ssl_stream<boost::beast::tcp_stream>;
  using Answer = std::function<void(const std::string& body)>;
  void Call(const std::string& method, const std::string& rest, const std::string& body,
            Answer answer);
  void Broken();

  Gang& gang_;
  const int node_;
  int connections_ = 0;
  uint64_t printed_ = 0;
  std::unique_ptr<Stream> stream_;
  boost::beast::flat_buffer buffer_;
  boost::beast::http::request<boost::beast::http::string_body> request_;
  boost::beast::http::response<boost::beast::http::string_body> response_;
};

}  // namespace tutti::swarm
