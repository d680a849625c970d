// Runs the checks of `tutti doctor`: whether this machine and its service can run jobs; each check
// that fails names its remedy. Checks touch nothing but what they say, and end by themselves, most
// within seconds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/machine/rdma_ports.h"
#include "platform/client/connection/connection.h"

namespace tutti::client {

struct Check {
  enum class Outcome { kOk, kWarning, kFailed };
  std::string name;
  Outcome outcome = Outcome::kOk;
  std::string detail;  // what was found
  std::string remedy;  // what to do; empty when nothing is to be done
};

// DoctorSubject is what the checks look at; tests replace parts of it.
struct DoctorSubject {
  Connect connect;
  std::string version;                           // of this program
  std::filesystem::path home;                    // the service's state folder
  std::filesystem::path program_folder;          // where tutti-train and tutti-score are expected
  std::map<std::string, std::string> variables;  // whose PATH has others' programs
  uint64_t least_disk_bytes = 1'000'000'000;
  uint64_t least_memory_bytes = 1'000'000'000;
  uint64_t least_open_files = 4096;
  std::filesystem::path rdma_devices = base::kRdmaDevices;
  std::string ucx = "libucp.so.0";
};

Check CheckService(const DoctorSubject& subject);   // answers, and with which version
Check CheckToken(const DoctorSubject& subject);     // lets us in; how many nodes
Check CheckProblems(const DoctorSubject& subject);  // what it found broken and goes on without
Check CheckHome(const DoctorSubject& subject);      // a file can be written there
Check CheckDisk(const DoctorSubject& subject);
// Says whether this machine encrypts the disks of state, results and data. That it does not is no
// fault: what is below it, as a cloud's disk, may.
Check CheckEncryption(const DoctorSubject& subject);
Check CheckMemory(const DoctorSubject& subject);
// Returns whether a service that is started so may open files for the connections of many nodes.
Check CheckOpenFiles(const DoctorSubject& subject);
Check CheckCores();
// Returns whether the program is there and starts, which shows that it finds its libraries.
Check CheckProgram(const DoctorSubject& subject, const std::string& name);
Check CheckLoopback();    // 127.77.0.x, the virtual nodes' addresses, can be bound
Check CheckNamespaces();  // a process can get a host name of its own
Check CheckMasterPort();  // 6105 is free
// Say where the program is and of which version, or what does not work without it.
Check CheckUv(const DoctorSubject& subject);
Check CheckPodman(const DoctorSubject& subject);
Check CheckFileServers(const DoctorSubject& subject);
Check CheckRdma(const DoctorSubject& subject);  // that is there, and whether it can be used

// Returns all of the above, and what the machine is good for (report_checks.h).
std::vector<Check> AllChecks(const DoctorSubject& subject);
// Returns whether no check has failed.
bool NoneFailed(const std::vector<Check>& checks);
// Returns {"checks": [{"name", "outcome": "ok"/"warning"/"failed", "detail", "remedy"}]}
std::string ChecksAsJson(const std::vector<Check>& checks);

}  // namespace tutti::client
