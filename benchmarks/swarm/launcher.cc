#include "launcher.h"

#include <boost/asio/connect.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <iostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tutti::swarm {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

}  // namespace

void Launcher::Broken() {
  ++gang_.failures;
  stream_.reset();
}

void Launcher::Connect(Done done) {
  stream_ = std::make_unique<Stream>(gang_.loop, gang_.tls);
  ++connections_;
  boost::beast::get_lowest_layer(*stream_).async_connect(
      gang_.service, [this, done = std::move(done)](const error_code& code) {
        if (code) return Broken();
        stream_->async_handshake(
            boost::asio::ssl::stream_base::client,
            [this, done](const error_code& failed) { failed ? Broken() : done(); });
      });
}

void Launcher::Call(const std::string& method, const std::string& rest, const std::string& body,
                    Answer answer) {
  request_ = {};
  request_.method_string(method);
  request_.version(11);
  request_.target(
      absl::StrCat("/internal/v1/allocations/", gang_.allocation, "/nodes/", node_, rest));
  request_.set(http::field::host, "swarm");
  request_.set(http::field::authorization, absl::StrCat("Bearer ", gang_.token));
  request_.body() = body;
  request_.prepare_payload();
  http::async_write(*stream_, request_,
                    [this, answer = std::move(answer)](const error_code& code, size_t) {
                      if (code) return Broken();
                      response_ = {};
                      http::async_read(*stream_, buffer_, response_,
                                       [this, answer](const error_code& failed, size_t) {
                                         if (failed) return Broken();
                                         if (response_.result_int() != 200) {
                                           std::cerr << response_.body() << std::endl;
                                           ++gang_.failures;
                                         }
                                         answer(response_.body());
                                       });
                    });
}

void Launcher::Report(const std::string& lines, int first, Done done) {
  Call("POST", absl::StrCat("/events?first=", first), lines,
       [done = std::move(done)](const std::string&) { done(); });
}

void Launcher::AwaitGo(Done done) {
  Call("GET", "/go?wait=20", "", [this, done = std::move(done)](const std::string& body) {
    absl::StrContains(body, "true") ? done() : AwaitGo(done);
  });
}

void Launcher::Print(const std::string& text, Done done) {
  Call("POST", absl::StrCat("/output?rank=", node_, "&stream=stdout&offset=", printed_), text,
       [this, size = text.size(), done = std::move(done)](const std::string&) {
         printed_ += size;
         done();
       });
}

}  // namespace tutti::swarm
