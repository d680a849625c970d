#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "runtime/comm/communicator.h"

namespace tutti::comm {
namespace {

constexpr const char* kVariables[] = {"RANK",
                                      "WORLD_SIZE",
                                      "NODE_RANK",
                                      "MASTER_ADDR",
                                      "MASTER_PORT",
                                      "TUTTI_NODE_ADDRESS",
                                      "TUTTI_JOB_TOKEN",
                                      "TUTTI_TRANSPORT",
                                      "TUTTI_ELASTIC",
                                      "TUTTI_GROUP_FILE",
                                      "TUTTI_GROUP_MEMBERS",
                                      "TUTTI_COMM_STREAMS",
                                      "TUTTI_COMM_TLS",
                                      "TUTTI_COMM_DETERMINISTIC",
                                      "TUTTI_COMM_CHECK"};

// The variables as given while it lives, the others unset.
using Variables = std::map<std::string, std::string>;
class Environment {
 public:
  explicit Environment(const Variables& values) {
    Clear();
    for (const auto& [name, value] : values) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() { Clear(); }
  Environment(const Environment&) = delete;

 private:
  static void Clear() {
    for (const char* name : kVariables) ::unsetenv(name);
  }
};

std::string FaultOf(const Variables& values) {
  const Environment environment(values);
  const auto options = GroupOptionsFromEnvironment();
  EXPECT_TRUE(absl::IsInvalidArgument(options.status()));
  return std::string(options.status().message());
}

TEST(GroupOptionsFromEnvironment, IsOneRankWithoutRANK) {
  const Environment environment(Variables{{"WORLD_SIZE", "7"}});
  const auto options = GroupOptionsFromEnvironment();
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->rank, 0);
  EXPECT_EQ(options->size, 1);
}

TEST(GroupOptionsFromEnvironment, TakesEveryVariable) {
  const Environment environment({{"RANK", "5"},
                                 {"WORLD_SIZE", "8"},
                                 {"NODE_RANK", "2"},
                                 {"MASTER_ADDR", "127.77.0.1"},
                                 {"MASTER_PORT", "6107"},
                                 {"TUTTI_NODE_ADDRESS", "127.77.0.3"},
                                 {"TUTTI_JOB_TOKEN", "secret"},
                                 {"TUTTI_TRANSPORT", "tcp"}});
  const auto options = GroupOptionsFromEnvironment();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->rank, 5);
  EXPECT_EQ(options->size, 8);
  EXPECT_EQ(options->node, 2);
  EXPECT_EQ(options->master_address, "127.77.0.1");
  EXPECT_EQ(options->master_port, 6107);
  EXPECT_EQ(options->address, "127.77.0.3");
  EXPECT_EQ(options->token, "secret");
  EXPECT_EQ(options->transport, GroupOptions::Transport::kTcp);
}

TEST(GroupOptionsFromEnvironment, HasDefaultsForAllButRankAndSize) {
  const Environment environment({{"RANK", "1"}, {"WORLD_SIZE", "2"}});
  const auto options = GroupOptionsFromEnvironment();
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->master_address, "127.0.0.1");
  EXPECT_EQ(options->master_port, 6105);
  EXPECT_EQ(options->address, "127.0.0.1");
  EXPECT_EQ(options->transport, GroupOptions::Transport::kAuto);
}

TEST(GroupOptionsFromEnvironment, TakesWhatIsToBeDoneOnTheWayAndHowToChoose) {
  const Environment environment({{"RANK", "0"},
                                 {"WORLD_SIZE", "2"},
                                 {"TUTTI_TRANSPORT", "ucx"},
                                 {"TUTTI_COMM_STREAMS", "4"},
                                 {"TUTTI_COMM_TLS", "1"},
                                 {"TUTTI_COMM_DETERMINISTIC", "1"},
                                 {"TUTTI_COMM_CHECK", "1"}});
  const auto options = GroupOptionsFromEnvironment();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->transport, GroupOptions::Transport::kUcx);
  EXPECT_EQ(options->tcp_streams, 4);
  EXPECT_TRUE(options->encrypt);
  EXPECT_TRUE(options->deterministic);
  EXPECT_TRUE(options->check_calls);
}

TEST(GroupOptionsFromEnvironment, LeavesTheAddressToTheRoutesWhenOnlyTheMasterIsSaid) {
  const Environment environment(
      Variables{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node-0"}});
  EXPECT_EQ(GroupOptionsFromEnvironment()->address, "");
}

TEST(GroupOptionsFromEnvironment, NamesTheVariableThatIsWrong) {
  EXPECT_EQ(FaultOf({{"RANK", "0"}}), "RANK is set, but WORLD_SIZE is not");
  EXPECT_EQ(FaultOf({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), "RANK=\"2\": not a number from 0 to 1");
  EXPECT_EQ(FaultOf({{"RANK", "one"}, {"WORLD_SIZE", "2"}}),
            "RANK=\"one\": not a number from 0 to 1");
  EXPECT_EQ(FaultOf({{"RANK", "0"}, {"WORLD_SIZE", ""}}),
            "WORLD_SIZE=\"\": not a number from 1 to 65536");
  EXPECT_EQ(FaultOf({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "0"}}),
            "MASTER_PORT=\"0\": not a number from 1 to 65535");
  EXPECT_EQ(FaultOf({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TUTTI_TRANSPORT", "rdma"}}),
            "TUTTI_TRANSPORT=\"rdma\": not one of auto, tcp, shm, ucx");
}

TEST(GroupOptionsFromEnvironment, TakesANewcomerWithoutARankAndThePlacesWhereItMayCome) {
  const Environment environment({{"TUTTI_ELASTIC", "1"},
                                 {"TUTTI_JOB_TOKEN", "secret"},
                                 {"TUTTI_GROUP_FILE", "/shared/members"},
                                 {"TUTTI_GROUP_MEMBERS", "10.0.0.1:4000, 10.0.0.2:4001"}});
  const auto options = GroupOptionsFromEnvironment();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->elastic);
  EXPECT_EQ(options->token, "secret");
  EXPECT_EQ(options->group_file, "/shared/members");
  EXPECT_EQ(options->members, (std::vector<std::string>{"10.0.0.1:4000", "10.0.0.2:4001"}));
  EXPECT_EQ(FaultOf({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TUTTI_COMM_STREAMS", "65"}}),
            "TUTTI_COMM_STREAMS=\"65\": not a number from 0 to 64");
  EXPECT_EQ(FaultOf({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TUTTI_COMM_TLS", "yes"}}),
            "TUTTI_COMM_TLS=\"yes\": not a number from 0 to 1");
}

}  // namespace
}  // namespace tutti::comm
