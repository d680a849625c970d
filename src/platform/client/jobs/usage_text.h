// Shows what a job's processes use: a row for each node and each rank.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "platform/client/connection/usage_view.h"
#include "platform/client/text/style.h"

namespace tutti::client {

// Returns the title line and a line for each node, with those of its ranks behind it; on a terminal
// with the course of it, where that is wide enough. `asked`: how long ago `usage` came.
std::string UsageTable(const JobUsageView& usage, const Screen& screen,
                       absl::Duration asked = absl::ZeroDuration());

// Returns why the table would have nothing to show, as a sentence; "" if it has.
std::string WhyNoUsage(const JobUsageView& usage);

// Returns what all of its nodes have used together over its life, a line for each thing that is
// measured, with the course of it on a terminal, and what is wrong:
//
//   Use
//     cpu     ▁▃▇███  mean 1.80 of 2 cores, peak 2.00
//     memory  ▁▃▇███  mean 3.10 GB, peak 4.00 GB
//
// Of a job that runs also what it uses now. `cores`: how many its nodes have for it, 0 if that is
// not known. Nothing where nothing is known.
std::string UseText(const JobUsageView& usage, int cores, const Screen& screen);

// Returns how the job's ranks stand, those that have ended by name as far as they are few: "2
// running, 1 ended (rank 1, exit code 0, 2026-11-30 12:03:11)". "" of a job without ranks.
std::string RanksText(const JobUsageView& usage);

// Returns lines of `answer`, JSON as docs/formats/rest.md has it of /v1/jobs/{job}/usage: what is
// wrong, then the table. Of a job that runs the values of the last second; of one that has ended
// the means over its life, and the most memory. Says so if there is nothing.
absl::StatusOr<std::string> UsageText(const std::string& answer, const Screen& screen);

}  // namespace tutti::client
