// Answers requests that touch a folder, which may hang: a thread of the service makes the answer,
// while the connection waits without one; the answer is 503 if that takes too long.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "platform/api/routing/router.h"
#include "platform/service/service.h"

namespace tutti::api {

struct FileCall {
  service::Service* service;
  service::Service::FileWork kind;
  std::string queue;  // see Service::DoFileWork
};

// Answers by work on files: `make` is called once or, if nobody waits for it any more when its turn
// comes, never; by another thread, so that what it refers to has to live on its own, or to be the
// service.
http::Response AnswerByFileWork(const FileCall& call, http::Connection& connection,
                                std::function<http::Response()> make);

// Returns an answer that a browser keeps as a file, whatever is in it: what a job has made must not
// become a page of the portal's origin.
http::Response DownloadResponse(std::string content_type, std::filesystem::path file);

}  // namespace tutti::api
