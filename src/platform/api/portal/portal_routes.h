// Lists the routes of the portal: its files, and the calls by which a page signs in.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "platform/api/portal/portal_sessions.h"
#include "platform/api/routing/router.h"

namespace tutti::api {

// Portal is what one listener of the service knows of it. All listeners have the same words.
struct Portal {
  std::filesystem::path folder;  // what vite has built: index.html, assets/; it may be missing
  PortalWords* words = nullptr;  // null: the service has no portal
  PortalSessions* sessions = nullptr;  // this listener's
  std::vector<PortalSessions*> all_sessions = {};
  // Whether pages sign in here by plain HTTP too; else only by TLS, be it a proxy's.
  bool is_page_listener = false;
  // Returns where this machine's browsers find the portal, "http://tutti-01.localhost:6281", or why
  // they find it nowhere.
  std::function<absl::StatusOr<std::string>()> url;
};

// `portal` outlives the routes.
std::vector<Route> PortalRoutes(const Portal* portal);

}  // namespace tutti::api
