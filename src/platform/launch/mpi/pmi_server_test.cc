// Covers: platform/launch/node/tcp.cc.
#include "platform/launch/mpi/pmi_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/test_patience.h"
#include "platform/launch/environment/pmi_id.h"

namespace tutti::launch {
namespace {

base::Deadline WithinAMinute() { return base::Deadline::After(base::Patient(absl::Seconds(60))); }

// A rank as MPICH's library is one.
class Rank {
 public:
  Rank(int port, const char* own_address = "127.0.0.1") {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    ::inet_pton(AF_INET, own_address, &name.sin_addr);
    ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name);
    ::inet_pton(AF_INET, "127.0.0.1", &name.sin_addr);
    name.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
    const timeval patience = absl::ToTimeval(base::Patient(absl::Seconds(60)));
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  void Say(const std::string& line) const {
    const std::string text = absl::StrCat(line, "\n");
    ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Until `end` has come; all that has come, if it is cut off.
  std::string ReadUntil(absl::string_view end) {
    std::string heard;
    char c;
    while (!absl::EndsWith(heard, end) && ::recv(fd_.get(), &c, 1, 0) == 1) heard += c;
    return heard;
  }

 private:
  const base::UniqueFd fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

class PmiServerTest : public ::testing::Test {
 protected:
  PmiServerTest() : server_(Listen()) { server_->Serve({}); }
  static std::unique_ptr<PmiServer> Listen() {
    auto listens = PmiServer::Listen(Plan());
    EXPECT_TRUE(listens.ok()) << listens.status();
    return *std::move(listens);
  }
  static spec::LaunchPlan Plan() {
    spec::LaunchPlan plan;
    plan.allocation_id = "job.1";
    plan.job_token = "beef";
    plan.distribution.type = "mpi";
    plan.nodes = {{.name = "n1", .address = "127.0.0.1", .first_rank = 0, .process_count = 2}};
    plan.distribution.process_count_per_instance = 2;
    return plan;
  }
  static std::string InitOf(int rank) {
    return absl::StrCat("cmd=initack pmiid=", PmiId(Plan(), rank));
  }
  std::unique_ptr<PmiServer> server_;
};

TEST_F(PmiServerTest, RanksMeetInItsBarrier) {
  Rank zero(server_->port()), one(server_->port());
  zero.Say(InitOf(0));
  one.Say(InitOf(1) + "\ncmd=barrier_in");
  EXPECT_EQ(zero.ReadUntil("debug=0\n"),
            "cmd=initack rc=0\ncmd=set size=2\ncmd=set rank=0\ncmd=set debug=0\n");
  zero.Say("cmd=put kvsname=kvs_0 key=a value=b\ncmd=barrier_in");
  EXPECT_TRUE(absl::EndsWith(zero.ReadUntil("barrier_out rc=0\n"), "barrier_out rc=0\n"));
  EXPECT_TRUE(absl::EndsWith(one.ReadUntil("barrier_out rc=0\n"), "barrier_out rc=0\n"));
}

TEST_F(PmiServerTest, NoTwoWorldsShareASpace) {
  const std::unique_ptr<PmiServer> other = Listen();
  other->Serve({});
  std::set<std::string> spaces;
  for (const int port : {server_->port(), other->port()}) {
    Rank rank(port);
    rank.Say(InitOf(0) + "\ncmd=get_my_kvsname");
    rank.ReadUntil("kvsname=");
    spaces.insert(rank.ReadUntil("\n"));
  }
  EXPECT_EQ(spaces.size(), 2u);
  EXPECT_FALSE(spaces.contains(""));
}

TEST_F(PmiServerTest, CutsOffWhoIsNoRank) {
  Rank stranger(server_->port());
  stranger.Say("GET / HTTP/1.1");
  EXPECT_EQ(stranger.ReadUntil("\n"), "");
  Rank endless(server_->port());
  endless.Say(std::string(1 << 17, 'x'));
  EXPECT_EQ(endless.ReadUntil("\n"), "");
}

TEST_F(PmiServerTest, LetsNobodyInFromElsewhere) {
  Rank stranger(server_->port(), "127.9.9.9");
  stranger.Say(InitOf(0));
  EXPECT_EQ(stranger.ReadUntil("\n"), "");
}

TEST_F(PmiServerTest, LetsNobodyInWhoDoesNotKnowARanksId) {
  for (const char* id : {"0", "1", "-1", "2147483647", "99999999999"}) {
    Rank stranger(server_->port());
    stranger.Say(absl::StrCat("cmd=initack pmiid=", id, "\ncmd=abort exitcode=3"));
    EXPECT_EQ(stranger.ReadUntil("\n"), "") << id;
  }
  EXPECT_FALSE(server_->busy());
  EXPECT_FALSE(server_->failure());
  Rank zero(server_->port()), one(server_->port());
  zero.Say(InitOf(0));
  one.Say(InitOf(1));
  EXPECT_TRUE(absl::EndsWith(zero.ReadUntil("debug=0\n"), "rank=0\ncmd=set debug=0\n"));
  EXPECT_TRUE(absl::EndsWith(one.ReadUntil("debug=0\n"), "rank=1\ncmd=set debug=0\n"));
}

TEST_F(PmiServerTest, HearsTenWrongIdsASecond) {
  const absl::Duration began = base::SteadyNow();
  for (int i = 0; i < 6; ++i) {
    Rank stranger(server_->port());
    stranger.Say("cmd=initack pmiid=0");
    EXPECT_EQ(stranger.ReadUntil("\n"), "");
  }
  EXPECT_GE(base::SteadyNow() - began, absl::Milliseconds(500));
}

TEST_F(PmiServerTest, IsBusyWhileARankIsThere) {
  Rank stranger(server_->port());
  {
    Rank zero(server_->port());
    zero.Say(InitOf(0));
    zero.ReadUntil("debug=0\n");
    zero.Say("cmd=get_appnum");
    zero.ReadUntil("\n");  // whose first line was heard in a turn before
    EXPECT_TRUE(server_->busy());
  }
  pollfd news{server_->news().fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&news, 1, WithinAMinute().RemainingMillis()), 1);
  EXPECT_FALSE(server_->busy());
}

TEST_F(PmiServerTest, KnowsOfARankThatHasLeftTheOthers) {
  Rank zero(server_->port());
  zero.Say(InitOf(0));
  zero.ReadUntil("debug=0\n");
  {
    Rank one(server_->port());
    one.Say(InitOf(1));
    one.ReadUntil("debug=0\n");
    EXPECT_FALSE(server_->failure());
  }
  do {  // each answer comes after a turn, of which one hears that the other has gone
    zero.Say("cmd=get_appnum");
  } while (absl::EndsWith(zero.ReadUntil("\n"), "appnum=0\n") && !server_->failure());
  ASSERT_TRUE(server_->failure());
  EXPECT_EQ(server_->failure()->rank, 1);
}

TEST_F(PmiServerTest, TellsOfAnAbortAtOnceAndOnce) {
  Rank zero(server_->port());
  zero.Say(InitOf(0));
  zero.ReadUntil("debug=0\n");
  zero.Say("cmd=abort exitcode=3");
  pollfd news{server_->news().fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&news, 1, WithinAMinute().RemainingMillis()), 1);
  ASSERT_TRUE(server_->failure());
  EXPECT_EQ(server_->failure()->abort_code, 3);
  server_->news().Clear();
  for (int i = 0; i < 2; ++i) {  // each answer comes after a turn
    zero.Say("cmd=get_appnum");
    zero.ReadUntil("appnum=0\n");
  }
  EXPECT_EQ(::poll(&news, 1, 0), 0);
}

TEST_F(PmiServerTest, WhoComesWhenNoDescriptorIsLeftIsTakenLater) {
  Rank zero(server_->port());
  zero.Say(InitOf(0));
  zero.ReadUntil("debug=0\n");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = ::dup(0);
  ::close(lowest_free);
  const rlimit one_more = {static_cast<rlim_t>(lowest_free) + 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &one_more), 0);
  Rank one(server_->port());
  one.Say(InitOf(1));
  zero.Say("cmd=get_appnum");
  EXPECT_TRUE(absl::EndsWith(zero.ReadUntil("\n"), "appnum=0\n"));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(absl::EndsWith(one.ReadUntil("debug=0\n"), "debug=0\n"));
}

TEST_F(PmiServerTest, ItsEndCutsOffWhoIsThere) {
  Rank zero(server_->port());
  server_.reset();
  EXPECT_EQ(zero.ReadUntil("\n"), "");
}

}  // namespace
}  // namespace tutti::launch
