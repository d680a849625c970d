// FaultLedger decides from the failures of jobs, where no check finds anything, whether a node is
// ill, or a job. Pure but for what it remembers, which a restart forgets. Not thread-safe.
//
// A node is ill once jobs of two different works have failed on it in a row, with none between them
// that went well: each is a witness. A work that fails so on two nodes is itself at fault: it is no
// witness against any, and what rested on its word is taken back.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "platform/store/store.h"

namespace tutti::service {

// Returns what makes two jobs the same work: a command with its code; for children, whose they are.
std::string WorkOf(const store::Job& job);

class FaultLedger {
 public:
  struct Fault {
    std::string work;
    std::string job;
    std::string what;  // "its launcher died"
  };

  // Notes that a job failed on the node for a reason that may be the node's. Returns why the node
  // counts as ill by now; "" if it does not.
  std::string NoteFault(const std::string& node, const Fault& fault);
  // Notes that a job of that work went well on the node.
  void NoteWell(const std::string& node, const std::string& work);
  // Forgets all that is known against the node, since somebody has judged otherwise.
  void Forget(const std::string& node);
  // Returns the nodes that were said to be ill by the word of what has proved to be at fault
  // itself, each once.
  std::vector<std::string> TakeCleared();

 private:
  void Blame(const std::string& work);

  std::map<std::string, std::vector<Fault>> in_a_row_;      // by node, each of another work
  std::map<std::string, std::set<std::string>> places_;     // by work: nodes on which it failed
  std::map<std::string, std::set<std::string>> witnesses_;  // by node that was said to be ill
  std::vector<std::string> cleared_;
};

}  // namespace tutti::service
