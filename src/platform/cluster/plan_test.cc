// Covers: configuration.cc, description.cc.
#include "platform/cluster/plan.h"

#include <gmock/gmock.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/command.h"
#include "base/status.h"
#include "base/test_patience.h"
#include "platform/cluster/configuration.h"
#include "platform/cluster/paths.h"
#include "platform/cluster/power_program.h"

namespace tutti::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

HostFacts BareHost(const std::string& name, int number) {
  HostFacts host;
  host.host = host.name = name;
  host.address = absl::StrCat("10.0.0.", number);
  host.system = "debian 12";
  host.has_apt = true;
  host.cores_per_socket = 8;
  host.sockets = host.threads_per_core = 2;
  host.memory_mib = 64000;
  return host;
}

Description TwoNodes() {
  Description wanted;
  wanted.controller = "a";
  wanted.nodes = {"a", "b"};
  wanted.munge_key = "secret\n";
  return wanted;
}

std::vector<HostFacts> BareHosts() { return {BareHost("a", 1), BareHost("b", 2)}; }

void Put(HostFacts& host, absl::string_view file, absl::string_view content) {
  host.files[std::string(file)] = base::Hex(base::Sha256Of(content));
}

// Returns the hosts as they are after a plan was carried out.
std::vector<HostFacts> Standing(const Description& wanted) {
  std::vector<HostFacts> hosts = BareHosts();
  for (HostFacts& host : hosts) {
    host.commands = {"munged", "srun", "slurmd", "slurmctld", "slurmdbd"};
    host.running = {"munged", "slurmd"};
    host.configured = true;
    Put(host, kMungeKey, wanted.munge_key);
    Put(host, kFetchedSlurmConf, SlurmConf(wanted, hosts));
    Put(host, kFetchedCgroupConf, CgroupConf(wanted, hosts));
    Put(host, kFetchedGresConf, GresConf(wanted, hosts));
    Put(host, kSlurmdOptions,
        absl::StrCat(kMark, "\nSLURMD_OPTIONS=\"--conf-server 10.0.0.1:6817\"\n"));
  }
  hosts[0].running.insert("slurmctld");
  Put(hosts[0], kSlurmConf, SlurmConf(wanted, hosts));
  Put(hosts[0], kCgroupConf, CgroupConf(wanted, hosts));
  Put(hosts[0], kGresConf, GresConf(wanted, hosts));
  for (HostFacts& host : hosts) {
    for (const auto& [file, hash] : host.files) {
      if (file != kMungeKey) host.marked.insert(file);
    }
  }
  return hosts;
}

std::string PlanText(const Plan& plan) {
  std::string text;
  for (const Step& step : plan.steps) absl::StrAppend(&text, step.host, ": ", step.what, "\n");
  return text;
}

TEST(Plan, OfBareHostsInstallsGivesTheKeyAndStartsTheControllerBeforeTheNodes) {
  const auto plan = MakePlan(TwoNodes(), BareHosts());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(PlanText(*plan),
            "a: install munge, slurm-client, slurmctld, slurmd\n"
            "b: install munge, slurm-client, slurmd\n"
            "a: give it the cluster's munge key\n"
            "b: give it the cluster's munge key\n"
            "a: write slurm.conf, cgroup.conf, gres.conf; start slurmctld\n"
            "a: write slurmd; start slurmd\n"
            "b: write slurmd; start slurmd\n");
}

TEST(Plan, OfAClusterThatStandsIsEmpty) {
  const auto plan = MakePlan(TwoNodes(), Standing(TwoNodes()));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(PlanText(*plan), "");
}

TEST(Plan, RepairsOnlyWhatIsWrong) {
  std::vector<HostFacts> hosts = Standing(TwoNodes());
  hosts[1].files.erase(std::string(kMungeKey));
  hosts[0].running.erase("slurmctld");
  Put(hosts[1], kFetchedSlurmConf, "an older one");
  const auto plan = MakePlan(TwoNodes(), hosts);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(PlanText(*plan),
            "b: give it the cluster's munge key\n"
            "a: start slurmctld\n"
            "b: restart slurmd with the new configuration\n");
}

TEST(Plan, ForOneMoreNodeRestartsTheControllerAndTheNodes) {
  Description wanted = TwoNodes();
  std::vector<HostFacts> hosts = Standing(wanted);
  wanted.nodes.push_back("c");
  hosts.push_back(BareHost("c", 3));
  hosts[2].commands = {"munged", "srun", "slurmd"};
  const auto plan = MakePlan(wanted, hosts);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(PlanText(*plan),
            "c: give it the cluster's munge key\n"
            "a: write slurm.conf; restart slurmctld\n"
            "a: restart slurmd with the new configuration\n"
            "b: restart slurmd with the new configuration\n"
            "c: write slurmd; start slurmd\n");
}

TEST(Plan, RefusesWhatItWouldHarmOrCannotDoWithALineForEachHost) {
  std::vector<HostFacts> hosts = BareHosts();
  hosts[0].foreign_configuration = true;
  hosts[1].has_apt = false;
  hosts[1].system = "rocky 9";
  const auto plan = MakePlan(TwoNodes(), hosts);
  EXPECT_TRUE(absl::IsFailedPrecondition(plan.status()));
  EXPECT_THAT(plan.status().message(),
              AllOf(HasSubstr("a has a /etc/slurm/slurm.conf that tutti did not make"),
                    HasSubstr("\nb runs rocky 9")));
}

TEST(Plan, RefusesAnAddressAtWhichOtherHostsDoNotReachOne) {
  std::vector<HostFacts> hosts = BareHosts();
  hosts[0].address = "127.0.1.1";
  hosts[1].address = "fd00::2";
  EXPECT_THAT(MakePlan(TwoNodes(), hosts).status().message(),
              AllOf(HasSubstr("a was reached at 127.0.1.1"), HasSubstr("/etc/hosts"),
                    HasSubstr("\nb was reached at fd00::2: Slurm is set up over IPv4")));
  Description alone = TwoNodes();
  alone.nodes = {"a"};
  EXPECT_TRUE(MakePlan(alone, {hosts[0]}).ok());
  alone.autoscale.emplace();
  EXPECT_FALSE(MakePlan(alone, {hosts[0]}).ok()) << "the nodes that come reach it";
}

TEST(Plan, RefusesOneMachineUnderTwoNames) {
  std::vector<HostFacts> hosts = BareHosts();
  hosts[1].name = "a";
  EXPECT_THAT(MakePlan(TwoNodes(), hosts).status().message(),
              HasSubstr("b and a both call themselves a"));
}

TEST(Plan, RefusesANodeOfAutoscaleThatIsNamedTwice) {
  Description wanted = TwoNodes();
  wanted.autoscale.emplace();
  wanted.autoscale->nodes = {"c1", "b", "c1"};
  const absl::Status status = MakePlan(wanted, BareHosts()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("autoscale's node b is named twice (b)"),
                                      HasSubstr("autoscale's node c1 is named twice (autoscale)")));
}

TEST(Plan, StartsDaemonsBySystemdWhereItRuns) {
  std::vector<HostFacts> hosts = BareHosts();
  hosts[1].systemd = true;
  const auto plan = MakePlan(TwoNodes(), hosts);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->steps.back().script,
              AllOf(HasSubstr("systemctl enable"), HasSubstr("ConditionPathExists=\n"),
                    HasSubstr("\nRestart=on-failure\nRestartSec=5\n")));
  EXPECT_THAT(plan->steps.back().what, HasSubstr("tutti.conf"));
  EXPECT_THAT(plan->notes, testing::ElementsAre(HasSubstr("systemd does not run on a:"),
                                                HasSubstr("no cgroups hold a job")));
}

TEST(Plan, RefusesAHostOfAnotherCluster) {
  for (const bool configured : {true, false}) {
    std::vector<HostFacts> hosts = BareHosts();
    Put(hosts[1], kMungeKey, "another");
    hosts[1].running = {"munged"};
    if (configured) hosts[1].configured = true;
    if (!configured) hosts[1].running.insert("slurmd");  // which fetched its configuration
    const auto plan = MakePlan(TwoNodes(), hosts);
    EXPECT_TRUE(absl::IsFailedPrecondition(plan.status())) << plan.status();
    EXPECT_THAT(plan.status().message(),
                HasSubstr("b has Slurm and another munge key than this cluster's"));
  }
}

TEST(Plan, KeepsAKeyThatBelongsToNoSlurmBesideTheClusters) {
  std::vector<HostFacts> hosts = BareHosts();
  for (HostFacts& host : hosts) host.commands = {"munged", "srun", "slurmd", "slurmctld"};
  Put(hosts[0], kMungeKey, "drawn by the package");
  hosts[0].running = {"munged"};
  const auto plan = MakePlan(TwoNodes(), hosts);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::string& script = plan->steps.front().script;
  EXPECT_EQ(plan->steps.front().what, "give it the cluster's munge key");
  const size_t kept = script.find("/etc/munge/munge.key /etc/munge/munge.key.before-tutti\n");
  ASSERT_NE(kept, std::string::npos) << script;
  EXPECT_LT(kept, script.find("cat >/etc/munge/munge.key.new"));
}

TEST(Plan, RemovesOnlyWhatTuttiMadeThere) {
  std::vector<HostFacts> hosts = Standing(TwoNodes());
  Put(hosts[1], kGresConf, "the site's own");
  const auto steps = PlanRemoval(TwoNodes(), hosts);
  ASSERT_TRUE(steps.ok()) << steps.status();
  ASSERT_EQ(steps->size(), 2);
  EXPECT_THAT((*steps)[0].script, HasSubstr("rm -f /etc/slurm/gres.conf\n"));
  EXPECT_THAT((*steps)[1].script,
              AllOf(HasSubstr("rm -f /etc/default/slurmd\n"), HasSubstr("munge.key\n"),
                    Not(HasSubstr("slurmctld.pid")), Not(HasSubstr("/etc/slurm/gres.conf"))));
}

TEST(Plan, RemovesWhatItAddedToAUnitAlsoFromSystemd) {
  std::vector<HostFacts> hosts = Standing(TwoNodes());
  hosts[1].systemd = true;
  hosts[1].marked.insert(std::string(kSlurmdUnit));
  const auto steps = PlanRemoval(TwoNodes(), hosts);
  ASSERT_TRUE(steps.ok()) << steps.status();
  const std::string& script = (*steps)[1].script;
  const size_t removed = script.find(absl::StrCat("rm -f ", kSlurmdUnit));
  ASSERT_NE(removed, std::string::npos);
  EXPECT_THAT(script.substr(removed), HasSubstr("systemctl daemon-reload\n"));
}

TEST(Plan, RemovesNothingOfAnotherCluster) {
  std::vector<HostFacts> hosts = Standing(TwoNodes());
  Put(hosts[0], kMungeKey, "another");
  EXPECT_EQ(
      PlanRemoval(TwoNodes(), hosts).status(),
      absl::FailedPreconditionError("a does not hold this cluster's key; nothing was changed"));
  hosts = Standing(TwoNodes());
  hosts[0].foreign_configuration = true;
  hosts[1].files.erase(std::string(kMungeKey));
  EXPECT_EQ(PlanRemoval(TwoNodes(), hosts).status(),
            absl::FailedPreconditionError(
                "a has a /etc/slurm/slurm.conf that tutti did not make; nothing was changed\n"
                "b does not hold this cluster's key; nothing was changed"));
}

TEST(Plan, RemovesNothingOfAHostThatHasNoSlurmYet) {
  std::vector<HostFacts> hosts = BareHosts();
  Put(hosts[0], kMungeKey, "drawn by the package");
  hosts[0].running = {"munged"};
  const auto steps = PlanRemoval(TwoNodes(), hosts);
  ASSERT_TRUE(steps.ok()) << steps.status();
  for (const Step& step : *steps) EXPECT_EQ(step.script, "");
}

TEST(Configuration, HasTheHardwareThatWasFound) {
  std::vector<HostFacts> hosts = BareHosts();
  hosts[1].gpus = {{1, "NVIDIA H200"}, {2, "Tesla T4"}, {0, "NVIDIA H200"}};
  const std::string text = SlurmConf(TwoNodes(), hosts);
  EXPECT_THAT(text, HasSubstr("SlurmctldHost=a(10.0.0.1)\n"));
  EXPECT_THAT(text, HasSubstr("NodeName=a NodeAddr=10.0.0.1 Sockets=2 CoresPerSocket=8 "
                              "ThreadsPerCore=2 RealMemory=61936 State=UNKNOWN\n"));
  EXPECT_THAT(text, HasSubstr(" Gres=gpu:nvidia_h200:2,gpu:tesla_t4:1 State"));
  EXPECT_THAT(text, HasSubstr("GresTypes=gpu\n"));
  EXPECT_THAT(GresConf(TwoNodes(), hosts),
              HasSubstr("NodeName=b Name=gpu Type=nvidia_h200 File=/dev/nvidia[0,1]\n"
                        "NodeName=b Name=gpu Type=tesla_t4 File=/dev/nvidia[2]\n"));
}

TEST(Configuration, GivesAJobTheShareOfMemoryThatTheSmallestNodeHasForAProcessor) {
  std::vector<HostFacts> hosts = BareHosts();
  EXPECT_THAT(SlurmConf(TwoNodes(), hosts), HasSubstr("\nDefMemPerCPU=1935\n"));
  hosts[1].memory_mib = 32000;
  EXPECT_THAT(SlurmConf(TwoNodes(), hosts), HasSubstr("\nDefMemPerCPU=966\n"));
  Description scaled = TwoNodes();
  scaled.autoscale.emplace();
  scaled.autoscale->memory_mib = 900;
  EXPECT_THAT(SlurmConf(scaled, hosts), HasSubstr("\nDefMemPerCPU=808\n"));
}

TEST(Configuration, UsesCgroupsOnlyWhereAllNodesCan) {
  std::vector<HostFacts> hosts = BareHosts();
  hosts[0].cgroup = hosts[1].cgroup = "v2";
  hosts[0].systemd = hosts[1].systemd = true;
  EXPECT_THAT(SlurmConf(TwoNodes(), hosts), HasSubstr("ProctrackType=proctrack/cgroup\n"));
  EXPECT_THAT(CgroupConf(TwoNodes(), hosts), HasSubstr("CgroupPlugin=cgroup/v2\nConstrainCores"));
  EXPECT_THAT(MakePlan(TwoNodes(), hosts)->notes, IsEmpty());
  Description scaled = TwoNodes();
  scaled.autoscale.emplace();
  EXPECT_THAT(SlurmConf(scaled, hosts), HasSubstr("ProctrackType=proctrack/linuxproc\n"));
  EXPECT_THAT(MakePlan(scaled, hosts)->notes,
              testing::ElementsAre(HasSubstr("(none on nodes of autoscale; v2 on a, b)")));
  scaled.autoscale->cgroup = "v2";
  EXPECT_THAT(SlurmConf(scaled, hosts), HasSubstr("ProctrackType=proctrack/cgroup\n"));
  hosts[1].cgroup = "v1";
  EXPECT_THAT(SlurmConf(TwoNodes(), hosts), HasSubstr("ProctrackType=proctrack/linuxproc\n"));
}

TEST(Configuration, KeepsAccountsInADatabaseOnlyIfOneIsGiven) {
  Description wanted = TwoNodes();
  EXPECT_THAT(SlurmConf(wanted, BareHosts()), HasSubstr("JobCompType=jobcomp/filetxt"));
  wanted.accounting = *ReadAccountingDatabase("mysql://slurm:p@ss wort@db:3307/acct");
  EXPECT_THAT(SlurmConf(wanted, BareHosts()), HasSubstr("AccountingStorageHost=10.0.0.1"));
  EXPECT_THAT(
      SlurmdbdConf(*wanted.accounting, BareHosts()[0]),
      AllOf(HasSubstr("StorageHost=db\nStoragePort=3307\n"), HasSubstr("Pass=\"p@ss wort\"\n")));
  EXPECT_FALSE(ReadAccountingDatabase("mysql://slurm@db/acct").ok());
  for (const char* password : {"a\"b", "a#b", "a\tb"}) {
    EXPECT_THAT(ReadAccountingDatabase(absl::StrCat("mysql://slurm:", password, "@db/acct"))
                    .status()
                    .message(),
                HasSubstr("takes no password with"));
  }
}

TEST(Configuration, OfAutoscaleNamesEachNodeAndKeepsSome) {
  Description wanted = TwoNodes();
  wanted.autoscale = Autoscale{{"c1", "c2"}, 1, 60, 300, 90, "on \"$NODE\"", "off \"$NODE\""};
  const std::string text = SlurmConf(wanted, BareHosts());
  EXPECT_THAT(text, HasSubstr("NodeName=c1,c2 "));
  EXPECT_THAT(text, HasSubstr("SuspendTime=60\nSuspendTimeout=90\nResumeTimeout=300\n"));
  EXPECT_THAT(text, HasSubstr("SuspendExcNodes=a,b,c1\n"));
  EXPECT_THAT(ResumeProgram(*wanted.autoscale), HasSubstr("\non \"$NODE\"\n"));
  EXPECT_THAT(text, Not(HasSubstr("gpu")));
  wanted.autoscale->gpus = {{0, "NVIDIA H200"}, {1, "NVIDIA H200"}};
  EXPECT_THAT(SlurmConf(wanted, BareHosts()),
              AllOf(HasSubstr("GresTypes=gpu\n"),
                    HasSubstr(" Gres=gpu:nvidia_h200:2 Weight=10 State=CLOUD\n")));
  EXPECT_THAT(GresConf(wanted, BareHosts()),
              HasSubstr("NodeName=c1,c2 Name=gpu Type=nvidia_h200 File=/dev/nvidia[0,1]\n"));
}

TEST(Description, IsReadAsItWasWritten) {
  const base::TemporaryDirectory home;
  Description wanted = TwoNodes();
  wanted.autoscale = Autoscale{{"c1", "c2"}, 1, 60, 300, 90, "on", "off"};
  wanted.autoscale->gpus = {{3, "NVIDIA H200"}};
  wanted.autoscale->cgroup = "v2";
  ASSERT_TRUE(WriteDescription(home.path(), wanted).ok());
  const auto read = ReadDescription(home.path(), wanted.name);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(SlurmConf(*read, BareHosts()), SlurmConf(wanted, BareHosts()));
  EXPECT_EQ(GresConf(*read, BareHosts()), GresConf(wanted, BareHosts()));
  EXPECT_EQ(read->autoscale->cgroup, "v2");
}

TEST(HostFacts, AreReadFromWhatTheScriptPrints) {
  const auto facts = ReadFacts("10.0.0.7",
                               "Welcome!\nname=n7\naddress=10.0.0.7\nsystem=debian 12\napt=yes\n"
                               "topology=2 16 32\ncpus=32\nmemory_mib=1000\ngpu=3 NVIDIA H200\n"
                               "cgroup=v1\ncommand=slurmd\nrunning=slurmd\n"
                               "file=abc /etc/slurm/slurm.conf\nmarked=/etc/slurm/gres.conf\n"
                               "foreign=yes\nconfigured=yes\nend=yes\n");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->sockets, 2);
  EXPECT_EQ(facts->cores_per_socket, 8);
  EXPECT_EQ(facts->threads_per_core, 2);
  EXPECT_FALSE(facts->fewer_cpus);
  EXPECT_EQ(facts->gpus.front().minor, 3);
  EXPECT_EQ(facts->gpus.front().model, "NVIDIA H200");
  EXPECT_TRUE(facts->foreign_configuration);
  EXPECT_TRUE(facts->configured);
  EXPECT_THAT(facts->marked, testing::ElementsAre("/etc/slurm/gres.conf"));
  EXPECT_EQ(facts->files.at("/etc/slurm/slurm.conf"), "abc");
}

// Probes a host whose nvidia-smi is this script; time limits are a hundredth as long.
absl::StatusOr<HostFacts> ProbedWith(const std::string& nvidia_smi) {
  const base::TemporaryDirectory folder;
  const auto put = [&](const char* name, const std::string& text) {
    return base::WriteFileAtomic(folder.path() / name, absl::StrCat("#!/bin/sh\n", text), 0755);
  };
  TUTTI_RETURN_IF_ERROR(put("nvidia-smi", nvidia_smi));
  TUTTI_RETURN_IF_ERROR(put("timeout", "of=$1; shift; exec /usr/bin/timeout 0.$of \"$@\"\n"));
  base::ChildOptions options;
  options.arguments = {"/bin/sh", "-s", "--", "10.0.0.9 1 10.0.0.7 22"};
  options.environment = {{"PATH", folder.path().native() + ":/usr/bin:/bin"}};
  TUTTI_ASSIGN_OR_RETURN(const base::CommandResult probed,
                         base::RunCommand(options, ProbeScript(),
                                          base::Deadline::After(base::Patient(absl::Seconds(30)))));
  return ReadFacts("h", probed.out);
}

TEST(HostFacts, NameAGpuByItsMinorNumberWhichMayNotBeItsPlaceAmongThem) {
  const auto facts = ProbedWith(R"(cat <<'END'
GPU 00000000:1B:00.0
    Product Name                          : NVIDIA H200
    Product Brand                         : NVIDIA
    Minor Number                          : 1
GPU 00000000:43:00.0
    Product Name                          : Tesla T4
    Minor Number                          : 0
END
)");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_FALSE(facts->gpus_hang);
  EXPECT_EQ(facts->address, "10.0.0.7");
  ASSERT_EQ(facts->gpus.size(), 2);
  EXPECT_EQ(facts->gpus[0].minor, 1);
  EXPECT_EQ(facts->gpus[0].model, "NVIDIA H200");
  EXPECT_EQ(facts->gpus[1].minor, 0);
}

TEST(HostFacts, AreToldWhereAGpuHangs) {
  // The program is like one that hangs in the kernel: it outlives what would end it.
  const auto facts = ProbedWith("trap '' TERM\nexec sleep 2\n");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE(facts->gpus_hang);
  std::vector<HostFacts> hosts = Standing(TwoNodes());
  hosts[1].gpus_hang = true;
  EXPECT_THAT(MakePlan(TwoNodes(), hosts).status().message(),
              AllOf(HasSubstr("b has a GPU that does not answer"), Not(HasSubstr("a has"))));
}

TEST(HostFacts, OfAContainerWithFewerProcessorsAreThose) {
  const auto facts = ReadFacts(
      "c", "name=c\naddress=1.2.3.4\ntopology=2 16 32\ncpus=3\nmemory_mib=1000\nend=yes\n");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->cpus(), 3);
  EXPECT_TRUE(facts->fewer_cpus);
}

TEST(HostFacts, ThatWouldBreakAConfigurationAreRefused) {
  for (const char* line :
       {"name=a b", "name=a\nname=-x", "address=1;rm", "cpus=0", "cpus=x", "memory_mib=-1",
        "topology=0 1 1", "gpu=NVIDIA H200", "file=abc /etc/passwd", "marked=/x; rm"}) {
    const auto facts = ReadFacts(
        "h", absl::StrCat("name=h\naddress=1.2.3.4\ncpus=1\nmemory_mib=9\n", line, "\nend=yes\n"));
    EXPECT_THAT(facts.status().message(), HasSubstr("h: cannot use")) << line;
  }
  EXPECT_THAT(ReadFacts("h", "name=h\n").status().message(), HasSubstr("does not tell"));
}

}  // namespace
}  // namespace tutti::cluster
