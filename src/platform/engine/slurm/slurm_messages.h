// Translates Slurm's words for why a job waits, was refused or has ended into messages for users.
// Pure functions.
#pragma once

#include <string>

#include "platform/engine/slurm/queue_reader.h"

namespace tutti::engine {

// Returns "waits for nodes to become free (Slurm: Resources)".
std::string WhyItWaits(const SlurmJob& job);

// Returns "a node of it failed (Slurm: NODE_FAIL)"; "" for an end that says nothing of its own: the
// job's processes have told how they ended.
std::string HowItEnded(const SlurmJob& job);

// Returns whether it ended since a node failed, did not boot, could not launch it or was taken
// away.
bool HasLostANode(const SlurmJob& job);

// Judges an error of sbatch by the last line that it printed. True if Slurm may take the job later,
// or has taken it and could not say so; otherwise the refusal is final.
bool MayPass(absl::string_view stderr_text);
// Returns whether sbatch gave up waiting for Slurm's answer, by the last line that it printed.
bool TookTooLong(absl::string_view stderr_text);

// Returns the limit of jobs that may be submitted, if sbatch named one:
// "QOSMaxSubmitJobPerUserLimit". Else "": the same refusal is also made of jobs that are too large.
std::string SubmitLimit(absl::string_view stderr_text);

// Returns sbatch's error in one line of UTF-8 without its prefixes: what a site's rules had to say,
// and Slurm's word for it.
std::string ErrorIn(absl::string_view stderr_text);

// Returns why a launcher (`program`) could not begin: the last line in the output of its batch step
// that gives a reason, with the remedy; bounded and in UTF-8. "" if no line does.
std::string WhyItCouldNotBegin(absl::string_view log, absl::string_view program);

}  // namespace tutti::engine
