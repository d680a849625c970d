// PortalSessions decides which requests of a browser come from a page of the portal whose user has
// signed in (docs/decisions/115-signing-in.md). A session is a cookie that the service signs; it
// opens nothing for another user of this machine, under another host name, or for a page of another
// origin, and nothing once it was signed out of. What changes something needs a token besides,
// which only pages of the portal's own origin can know: cookies go to every port of a host.
// PortalWords are those of links, each of which opens one session.
//
// Both are thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "http/message.h"
#include "platform/api/portal/peer_user.h"

namespace tutti::api {

class PortalWords {
 public:
  static constexpr absl::Duration kLast = absl::Hours(1);

  // `own_user`: the service's. `clock` outlives the object.
  PortalWords(uint32_t own_user, const base::Clock* clock) : own_user_(own_user), clock_(clock) {}

  // Returns a new word for a link that `asked_by` asked for. It opens a session only for that user
  // of this machine, or for the service's own if it was asked for from another machine; one that is
  // made for browsers elsewhere does so by TLS for everybody, since a proxy may pass them on.
  std::string Make(PeerUser asked_by, bool for_elsewhere);
  // Uses the word up. Unauthenticated: there is none, it was used, or it is another user's, who can
  // use it still.
  absl::Status Use(absl::string_view word, PeerUser user, bool by_tls);
  // Makes all words useless.
  void Clear();
  // Returns whether the word can still be used.
  bool IsUnused(absl::string_view word) const;

 private:
  struct Word {
    absl::Time until;
    uint32_t user = 0;
    bool for_elsewhere = false;
  };
  const uint32_t own_user_;
  const base::Clock* const clock_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Word, std::less<>> words_ ABSL_GUARDED_BY(mutex_);
};

class PortalSessions {
 public:
  static constexpr absl::Duration kLast = absl::Hours(24 * 7);

  struct Session {
    std::string cookie;       // a whole Set-Cookie header
    std::string write_token;  // for the header X-Tutti-Portal
    absl::Time expires;
  };

  // `key`: nobody else knows it. `file` keeps which sessions have ended, for a key that outlives a
  // restart; empty: they are kept in memory alone. Where it cannot be read, no session of before
  // opens anything. `clock` outlives the object.
  PortalSessions(std::string key, std::filesystem::path file, const base::Clock* clock);

  // Opens a session for who sent the request. Unauthenticated: it is of a page of another origin.
  absl::StatusOr<Session> Open(const http::Request& request, PeerUser user);
  // Returns whether the request is that of a page with a session.
  bool Admits(const http::Request& request, PeerUser user) const;
  // Ends the session of an admitted request, wherever its cookie was copied to. An error is one of
  // the file: then it has not ended.
  absl::Status End(const http::Request& request);
  // Ends all sessions.
  absl::Status EndAll();
  // Returns the Set-Cookie header that takes the cookie away.
  std::string Closing(const http::Request& request) const;

 private:
  // What is said in a cookie, "UNTIL.ID.CODE".
  struct Named {
    std::string until, id, code;
    absl::Time expires;
  };
  Named NamedBy(const http::Request& request) const;
  std::string Code(absl::string_view what, const Named& session, absl::string_view who) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Cookie(absl::string_view value, absl::Duration lasts,
                     const http::Request& request) const;
  // What a file keeps. The era is signed with each session, so that another one ends all; `ended`
  // has the ids of ended ones, and until when each would have lasted, in Unix seconds.
  struct Kept {
    std::string era;
    std::map<std::string, int64_t> ended;
  };
  // An empty era: there is no file, or none that Change has written.
  Kept ReadKept() const;
  // Keeps `next` in the file and, if that succeeded, in memory.
  absl::Status Change(Kept next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(changing_);

  const std::string key_;
  const std::filesystem::path file_;
  const base::Clock* const clock_;
  const std::string cookie_name_;  // of this service alone: cookies do not know ports
  absl::Mutex changing_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable absl::Mutex mutex_;
  std::string era_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::api
