// Writes the answers of one connection. Internal to this room. Used by one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "platform/http/message.h"
#include "platform/http/request_reader.h"
#include "platform/http/socket.h"

namespace tutti::http {

class ResponseWriter final : public Writer {
 public:
  // Both outlive the object.
  ResponseWriter(Socket* socket, const std::atomic<bool>* stopping)
      : socket_(socket), stopping_(stopping) {}

  // Sends the whole answer. False if it broke off, or if the connection takes no other request.
  bool Send(const Response& response, const AnswerForm& form);

  // For streamed answers.
  absl::Status Write(absl::string_view bytes) override;
  bool Closed() override { return *stopping_ || socket_->PeerHasGone(); }

 private:
  bool SendAnyBody(const Response& response);
  // `length`: nullopt for a chunked body (HTTP/1.0: until the end of the connection).
  bool SendHeader(const Response& response, std::optional<uint64_t> length);
  bool SendAll(absl::string_view bytes);
  bool SendFile(const Response& response);
  bool SendChunked(const Response& response);

  Socket* const socket_;
  const std::atomic<bool>* const stopping_;
  AnswerForm form_;
  bool chunked_ = false;
};

}  // namespace tutti::http
