// Writes numbers as people read them. Pure functions; the words are English and stable, so that
// tests and scripts can rely on them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace tutti::client {

// Returns "3,210", "-1,000,000".
std::string WithCommas(int64_t number);

// Writes it in decimal units, three significant digits: "0 B", "999 B", "1.23 kB", "45.6 MB", "789
// GB".
std::string Bytes(uint64_t bytes);

// Writes how much of a copy has come: "12 of 1,000 files, 3.40 MB of 1.20 GB".
std::string PartOfCopy(int64_t files, int64_t of_files, int64_t bytes, int64_t of_bytes);

// Writes it as a clock: "0:41", "12:05", "1:02:03", "2 d 3:04:05". Negative durations show as
// "0:00".
std::string Clock(absl::Duration duration);

// Writes it roughly, for tables: "now" (below 1 s), "41 s", "3 min", "5 h", "12 d".
std::string Age(absl::Duration duration);

// Writes a fraction as a percentage with two digits: 0.6123 is "61.23 %".
std::string Percent(double fraction);

// Reads a time of RFC 3339; returns the infinite past for any other text.
absl::Time ParseTime(const std::string& text);

}  // namespace tutti::client
