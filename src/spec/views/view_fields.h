// A view is what the service tells of something over REST: a plain struct that lists its fields
// once, in a static function `Fields`. From that list come the service's JSON (view_writer.h), the
// client's reading of it (view_reader.h), and the schema in openapi.json (view_schema.h); so a new
// field is a member here, a line in `Fields`, and the line that fills it (platform/api/json/).
//
//   struct EventView {
//     static constexpr char kSchema[] = "Event";  // its name among openapi.json's schemas
//     std::string time, reason;
//     template <class Visitor>
//     static void Fields(Visitor& visitor) {
//       visitor.Field("time", &EventView::time, kTime);
//       visitor.Field("reason", &EventView::reason, "why it is in its state");
//     }
//   };
//
// A field may be a bool, an int, int64_t or uint64_t, a double, a text, JSON as it is (JsonText),
// another view, an optional, a vector, or a map from texts of any of these.
#pragma once

#include <string>

#include "absl/types/span.h"

namespace tutti::spec {

// How a field is written, beside its type.
struct Form {
  bool null_if_empty = false;   // a text: "" is written as null
  bool absent_if_none = false;  // an optional: the field is left out; otherwise it is null
  bool is_time = false;         // a text: RFC 3339, UTC
  bool is_needed = false;       // a vector: an answer without it is not this view
  absl::Span<const char* const> values = {};  // a text: those that it may be
  const char* schema = nullptr;               // a text: the schema of those, by name
};

inline constexpr Form kPlain = {};
inline constexpr Form kNullIfEmpty = {.null_if_empty = true};
inline constexpr Form kAbsentIfNone = {.absent_if_none = true};
inline constexpr Form kTime = {.is_time = true};
inline constexpr Form kTimeOrNull = {.null_if_empty = true, .is_time = true};
inline constexpr Form kNeeded = {.is_needed = true};

// JSON that the view hands on as it is; "" stands for null.
struct JsonText {
  std::string text;
};

}  // namespace tutti::spec
