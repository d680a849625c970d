// Lists the routes of the portal: its files, and the calls by which a page signs in.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "platform/api/portal/portal_sessions.h"
#include "platform/api/routing/router.h"

namespace tutti::api {

// Portal is what one listener of the service knows of it.
struct Portal {
  std::filesystem::path folder;  // what vite has built: index.html, assets/; it may be missing
  PortalSessions* sessions = nullptr;  // null: the service has no portal
  // Returns where this machine's browsers find the portal, "http://127.0.0.1:6281".
  std::function<std::string()> url;
  // Returns the user whose process has the other end of a connection to this listener from `peer`
  // ("127.0.0.1:40312"). It must not be asked of another listener's: there the same peer may be
  // somebody else.
  std::function<PortalSessions::User(absl::string_view peer)> user_of;
};

// `portal` outlives the routes.
std::vector<Route> PortalRoutes(const Portal* portal);

}  // namespace tutti::api
