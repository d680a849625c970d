// PortalSessions decides which requests of a browser come from a page of the portal whose user has
// signed in (docs/decisions/113-portal.md). A link's word opens one session. A session is a cookie
// that the service signs and does not keep, so that it outlives a restart; it opens nothing for
// another user of this machine, under another host name, or for a page of another origin. What
// changes something needs a token besides, which only pages of the portal's own origin can know:
// cookies go to every port of a host.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "platform/http/message.h"

namespace tutti::api {

class PortalSessions {
 public:
  static constexpr absl::Duration kWordLasts = absl::Hours(1);
  static constexpr absl::Duration kSessionLasts = absl::Hours(24 * 7);

  struct Session {
    std::string cookie;       // a whole Set-Cookie header
    std::string write_token;  // for the header X-Tutti-Portal
    absl::Time expires;
  };

  // The user of this machine whose process sends a request; nothing where that is not known, as of
  // another machine.
  using User = std::optional<uint32_t>;

  // `key`: the service's, which nobody else knows. `clock` outlives the object.
  PortalSessions(std::string key, const base::Clock* clock);

  // Returns a new word for a link, which opens one session within kWordLasts.
  std::string MakeWord();
  // Opens a session for who sent the request. Unauthenticated: the word is none, or was used.
  absl::StatusOr<Session> Open(absl::string_view word, const http::Request& request, User user);
  // Returns whether the request is that of a page with a session.
  bool Admits(const http::Request& request, User user) const;
  // Returns the Set-Cookie header that takes the cookie away.
  std::string Closing(const http::Request& request) const;

 private:
  std::string Code(absl::string_view what, absl::string_view expires, absl::string_view who) const;
  std::string Cookie(absl::string_view value, absl::Duration lasts,
                     const http::Request& request) const;

  const std::string key_;
  const base::Clock* const clock_;
  const std::string cookie_name_;  // of this service alone: cookies do not know ports
  absl::Mutex mutex_;
  std::map<std::string, absl::Time> words_ ABSL_GUARDED_BY(mutex_);  // until when each opens
};

// Returns the user whose process has the other end of a TCP connection of this machine, by the
// kernel's table of sockets (sock_diag(7)). `address`, `port`: this end's.
std::optional<uint32_t> UserOfLocalPeer(absl::string_view peer, absl::string_view address,
                                        int port);

}  // namespace tutti::api
