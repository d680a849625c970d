#include "http/server/server_connection.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "http/beast.h"

namespace tutti::http {
namespace {

constexpr absl::Duration kLongestLinger = absl::Seconds(2);
constexpr absl::Duration kLongestGoodbye = absl::Seconds(5);  // to who has sent no request
constexpr uint64_t kMostLingered = uint64_t{64} << 20;
constexpr uint64_t kLingeredInATurn = 256 << 10;

base::Deadline FarAway() { return base::Deadline::After(absl::InfiniteDuration()); }

Response Failed(const std::string& what, const std::exception& e) {
  spdlog::error("{}: {}", what, e.what());
  return ErrorResponse(500, "internal", "the service failed; its log has the reason");
}

Response Busy() {
  return ErrorResponse(503, "unavailable", "all connections for callers of this kind are busy");
}

Response NoRoom() {
  return ErrorResponse(
      503, "unavailable",
      "the threads for calls of this kind are busy: a folder or a cluster may not answer");
}

}  // namespace

ServerConnection::ServerConnection(int fd, const std::string& peer, const ServerContext& server,
                                   std::function<void()> wake)
    : fd_(fd),
      peer_(peer),
      server_(server),
      wake_(std::move(wake)),
      socket_(base::UniqueFd(fd), -1),
      reader_(&socket_, server.options, peer),
      step_(server.options.identity ? &ServerConnection::BeginTls : &ServerConnection::BeginIdle),
      until_(base::Deadline::After(server.options.header_timeout)) {
  socket_.SetWaiting(false);
}

ServerConnection::~ServerConnection() {
  DropBody();
  socket_.Release();
}

Need ServerConnection::Turn(Lane lane) {
  lane_ = lane;
  try {
    while (true) {
      if (const std::optional<Need> need = (this->*step_)()) return *need;
    }
  } catch (const std::exception& e) {
    spdlog::error("connection from {}: {}", peer_, e.what());
    return Close("an exception");
  }
}

Need ServerConnection::Close(absl::string_view why) const {
  spdlog::debug("connection from {} is closed: {}", peer_, std::string(why));
  return {};
}

std::optional<Need> ServerConnection::Then(Step step) {
  step_ = step;
  return std::nullopt;
}

Need ServerConnection::WaitForSocket(short events, Lane lane) const {
  return {.kind = Need::Kind::kWaiting,
          .waiting = {.events = events, .until = until_, .lane = lane}};
}

Need ServerConnection::WaitForNews(base::Deadline until, Lane lane) const {
  return {.kind = Need::Kind::kWaiting, .waiting = {.news = true, .until = until, .lane = lane}};
}

std::optional<Need> ServerConnection::NeedLane(Lane lane) const {
  if (lane_ == lane) return std::nullopt;
  return Need{.kind = Need::Kind::kLane, .place = {lane}};
}

Lane ServerConnection::LaneOfUnwanted() const {
  return IsStranger() ? Lane::kStranger : Lane::kProtocol;
}

std::optional<Need> ServerConnection::NeedRoom(Lane lane, absl::Duration patience, bool& refused) {
  const bool asked = std::exchange(asked_for_room_, false);
  refused = lane_ != lane && asked;
  if (lane_ == lane || refused) return std::nullopt;
  asked_for_room_ = true;
  return Need{.kind = Need::Kind::kRoom, .place = {lane, group_}, .patience = patience};
}

Lane ServerConnection::LaneOf() const {
  if (IsStranger()) return Lane::kStranger;
  if (role_ == Role::kMonitor) return Lane::kMonitor;
  return role_ == Role::kNode ? Lane::kNode : Lane::kUser;
}

Lane ServerConnection::LaneOfHandler() const {
  if (IsStranger() || role_ == Role::kMonitor) return LaneOf();
  if (IsBodyLarge() || pace_ == Pace::kReceives) {
    return role_ == Role::kNode ? Lane::kNodeIn : Lane::kUserIn;
  }
  if (pace_ == Pace::kQuick || role_ == Role::kNode) return LaneOf();
  return pace_ == Pace::kSlow ? Lane::kUserSlow : Lane::kUserForeign;
}

std::optional<Need> ServerConnection::BeginTls() {
  const error_code code = socket_.AcceptTls(*server_.options.identity);
  if (code == boost::asio::error::would_block && !until_.Expired() && !server_.stopping) {
    return WaitForSocket(socket_.Wanted(), Lane::kProtocol);
  }
  if (code == make_error_code(boost::system::errc::protocol_error)) {
    got_something_ = true;
    header_time_ = base::SteadyNow();
    incoming_ = IncomingRequest{absl::UnknownError("no TLS"), {}};
    reader_.Begin();
    return Answer(ErrorResponse(400, "tls_needed", "this service speaks TLS: use https://"));
  }
  return code ? Close("the handshake: " + code.message()) : Then(&ServerConnection::BeginIdle);
}

std::optional<Need> ServerConnection::BeginIdle() {
  reader_.Begin();
  incoming_.reset();
  response_ = {};
  kind_ = -1;
  // A stranger gets no more time between requests than for a header.
  const bool known = served_ && !IsStranger();
  until_ =
      base::Deadline::After(known ? server_.options.idle_timeout : server_.options.header_timeout);
  Then(&ServerConnection::Idle);
  return Need{.kind = Need::Kind::kLane,
              .place = {Lane::kProtocol}};  // others had to wait meanwhile
}

// Stopping the server ends the wait for a request and its header, not the work on one.
std::optional<Need> ServerConnection::Idle() {
  if (!server_.stopping && reader_.HasData()) {
    until_ = base::Deadline::After(server_.options.header_timeout);
    return Then(&ServerConnection::ReadHeader);
  }
  if (!server_.stopping && !until_.Expired()) return WaitForSocket(POLLIN, Lane::kProtocol);
  socket_.EndWriting();
  return Close("no request came in time");
}

std::optional<Need> ServerConnection::ReadHeader() {
  std::optional<Response> refusal;
  const bool late = until_.Expired() || server_.stopping;
  switch (reader_.ReadHeader(late, incoming_, refusal)) {
    case Progress::kMore:
      return WaitForSocket(socket_.Wanted(), Lane::kProtocol);
    case Progress::kDone:
      break;
    case Progress::kBroken:
      if (!refusal) {
        socket_.EndWriting();
        return Close("a header broke off");
      }
      got_something_ = true;
      header_time_ = base::SteadyNow();
      incoming_ = IncomingRequest{absl::UnknownError("no request"), {}};
      return Answer(*std::move(refusal));
  }
  got_something_ = true;
  header_time_ = base::SteadyNow();
  return Admit();
}

std::optional<Need> ServerConnection::Admit() {
  if (!incoming_->request.ok()) return Answer(ErrorResponse(incoming_->request.status()));
  Admission admission{.role = Role::kUser};
  if (server_.options.admit) {
    try {
      admission = server_.options.admit(*incoming_->request);
    } catch (const std::exception& e) {
      return Answer(Failed(incoming_->request->path, e));
    }
  }
  kind_ = admission.kind;
  if (admission.refusal) return Answer(*std::move(admission.refusal));
  pace_ = admission.pace;
  group_ = std::move(admission.group);
  if (admission.role != Role::kStranger) {
    if (!server_.open.Trust(fd_, admission.role)) return Answer(Busy());
    role_ = admission.role;
  }
  // A stranger keeps his place only as long as nobody else needs it, and his body is not read.
  if (IsStranger()) return Then(&ServerConnection::Handle);
  server_.open.MarkAnswering(fd_);
  until_ = base::Deadline::After(server_.options.stall_timeout);
  return Then(MayPrefetch() ? &ServerConnection::ReadSmallBody : &ServerConnection::Handle);
}

bool ServerConnection::MayPrefetch() {
  const int64_t bytes = reader_.ContentLength();
  if (role_ == Role::kMonitor) return false;  // what it asks needs none
  if (!reader_.MayPrefetch() || !server_.prefetch.Take(role_, bytes)) return false;
  prefetched_ = bytes;
  return true;
}

void ServerConnection::DropBody() {
  if (prefetched_ == 0) return;
  reader_.DropPrefetched();
  server_.prefetch.GiveBack(role_, std::exchange(prefetched_, 0));
}

std::optional<Need> ServerConnection::ReadSmallBody() {
  bool moved = false;
  const Progress progress = reader_.Prefetch(moved);
  if (progress == Progress::kDone) return Then(&ServerConnection::Handle);
  if (progress == Progress::kBroken) return Close("a body broke off");
  if (moved) until_ = base::Deadline::After(server_.options.stall_timeout);
  if (!until_.Expired()) return WaitForSocket(socket_.Wanted(), Lane::kProtocol);
  reader_.GiveUpBody();
  DropBody();
  return Answer(ErrorResponse(408, "timeout", "the request's body did not come in time"));
}

std::optional<Need> ServerConnection::Handle() {
  const Lane lane = LaneOfHandler();
  // A client whose large body is refused would have to send it again, so that it waits longer.
  const absl::Duration patience =
      IsBodyLarge() ? server_.options.stall_timeout : server_.options.room_timeout;
  bool refused = false;
  if (auto need = lane == LaneOf() ? NeedLane(lane) : NeedRoom(lane, patience, refused))
    return need;
  if (refused) {
    DropBody();
    return Answer(NoRoom());
  }
  socket_.SetWaiting(true);  // for bodies that come while the handler reads them
  socket_.Limit(std::nullopt, server_.options.stall_timeout);
  Response response = CallHandler();
  DropBody();
  socket_.SetWaiting(false);
  socket_.Limit(std::nullopt, absl::InfiniteDuration());
  if (reader_.Stalled()) {
    response = ErrorResponse(408, "timeout", "the request's body did not come in time");
  }
  return Answer(std::move(response));
}

Response ServerConnection::CallHandler() {
  const Request& request = *incoming_->request;
  try {
    return server_.handler(request, *this);
  } catch (const std::exception& e) {
    return Failed(absl::StrCat(request.method, " ", request.path), e);
  }
}

absl::StatusOr<std::string> ServerConnection::ReadBody(uint64_t max_bytes) {
  std::string body;
  const auto append = [&body](absl::string_view piece) {
    body.append(piece.data(), piece.size());
    return absl::OkStatus();
  };
  TUTTI_RETURN_IF_ERROR(ReadBodyTo(append, max_bytes));
  return body;
}

absl::Status ServerConnection::ReadBodyTo(
    const std::function<absl::Status(absl::string_view)>& sink, uint64_t max_bytes) {
  if (IsStranger()) return absl::UnauthenticatedError("who sends a body needs the service's token");
  return reader_.ReadBodyTo(sink, max_bytes);
}

std::optional<Need> ServerConnection::Answer(Response response) {
  response_ = std::move(response);
  return Then(response_.later ? &ServerConnection::PollLater : &ServerConnection::BeginAnswer);
}

std::optional<Need> ServerConnection::PollLater() {
  if (auto need = NeedLane(LaneOf())) return need;
  if (socket_.PeerHasGone()) return Close("the client has gone before its answer");
  base::Deadline again = FarAway();
  std::optional<Response> response;
  try {
    response = response_.later(again);
  } catch (const std::exception& e) {
    response = Failed("an answer that comes later", e);
  }
  if (!response && server_.stopping)
    response = ErrorResponse(503, "unavailable", "the service ends");
  return response ? Answer(*std::move(response)) : WaitForNews(again, LaneOf());
}

std::optional<Need> ServerConnection::BeginAnswer() {
  // Opening a file may take long.
  if (!response_.file.empty() && !response_.stream) {
    bool refused = false;
    if (auto need = NeedRoom(LaneOfFiles(), server_.options.room_timeout, refused)) return need;
    if (refused) response_ = NoRoom();
  }
  AnswerForm form = incoming_->form;
  if (!incoming_->request.ok() || !reader_.MaySkip() || server_.stopping) form.keep_alive = false;
  writer_.Begin(response_, form);
  ReportAnswer();
  if (IsStranger())
    server_.open.MarkWaiting(fd_);  // a stranger does not hold his place by reading slowly
  until_ = base::Deadline::After(got_something_ ? server_.options.stall_timeout : kLongestGoodbye);
  return Then(&ServerConnection::Send);
}

void ServerConnection::ReportAnswer() const {
  if (!server_.options.on_answered) return;
  server_.options.on_answered(
      {.kind = kind_, .status = writer_.status(), .time = base::SteadyNow() - header_time_});
}

std::optional<Need> ServerConnection::Send() {
  while (!writer_.unsent().empty()) {
    error_code code;
    const size_t n = socket_.WriteSome(writer_.unsent(), code);
    if (code == boost::asio::error::would_block) {
      if (until_.Expired()) return Close("the client does not read");
      return WaitForSocket(socket_.Wanted(), LaneOf());
    }
    if (code) return Close("sending an answer: " + code.message());
    writer_.Sent(n);
    until_ = base::Deadline::After(server_.options.stall_timeout);
  }
  return NextPart();
}

std::optional<Need> ServerConnection::NextPart() {
  if (writer_.complete()) return EndAnswer();
  return Then(writer_.has_file() ? &ServerConnection::NextOfFile : &ServerConnection::NextPiece);
}

std::optional<Need> ServerConnection::NextOfFile() {
  bool refused = false;
  if (auto need = NeedRoom(LaneOfFiles(), server_.options.room_timeout, refused)) return need;
  // The announced length cannot be kept.
  if (refused || !writer_.AddFromFile().ok()) return Close("a file cannot be sent to its end");
  return Then(&ServerConnection::Send);
}

std::optional<Need> ServerConnection::NextPiece() {
  bool refused = false;
  if (auto need = NeedRoom(LaneOfFiles(), server_.options.room_timeout, refused)) return need;
  if (refused) return Close("no room for a stream");  // it may come again, and be told
  // This is checked each time, since the kernel takes some bytes for a client that has gone.
  if (Closed()) return Close("the client of a stream has gone");
  base::Deadline again = FarAway();
  const absl::StatusOr<Piece> piece = response_.stream(again);
  if (!piece.ok()) return Close("a stream failed: " + piece.status().ToString());
  if (piece->bytes.empty() && !piece->last) return WaitForNews(again, LaneOfFiles());
  writer_.Add(*piece);
  until_ = base::Deadline::After(server_.options.stall_timeout);
  return Then(&ServerConnection::Send);
}

std::optional<Need> ServerConnection::EndAnswer() {
  const bool goes_on = writer_.form().keep_alive;
  response_ = {};
  server_.open.MarkWaiting(fd_);
  served_ = true;
  if (!goes_on) return BeginLingering();
  until_ = base::Deadline::After(server_.options.header_timeout);
  return Then(&ServerConnection::SkipBody);
}

std::optional<Need> ServerConnection::SkipBody() {
  if (auto need = NeedLane(LaneOfUnwanted())) return need;
  switch (reader_.Skip()) {
    case Progress::kMore:
      if (!until_.Expired()) return WaitForSocket(socket_.Wanted(), LaneOfUnwanted());
      return BeginLingering();
    case Progress::kBroken:
      return BeginLingering();
    case Progress::kDone:
      break;
  }
  return Then(&ServerConnection::BeginIdle);
}

// Closing with unread bytes makes the kernel reset the connection, which can take the answer from
// the client before it has read it: so say "no more", then read on for a moment.
std::optional<Need> ServerConnection::BeginLingering() {
  socket_.EndWriting();
  until_ = base::Deadline::After(kLongestLinger);
  return Then(&ServerConnection::Linger);
}

std::optional<Need> ServerConnection::Linger() {
  if (!got_something_ || server_.stopping) return Close("nothing came, or the service ends");
  if (auto need = NeedLane(LaneOfUnwanted())) return need;
  std::string block(kBlockBytes, '\0');
  error_code code;
  uint64_t bytes = 0;
  while (!code && bytes < kLingeredInATurn) bytes += socket_.Read(block.data(), block.size(), code);
  lingered_ += bytes;
  const bool goes_on = !code || code == boost::asio::error::would_block;
  if (!goes_on || lingered_ >= kMostLingered || until_.Expired())
    return Close("its answer said so");
  if (!code)
    return Need{.kind = Need::Kind::kLane, .place = {lane_}};  // behind those who wait for it
  return WaitForSocket(socket_.Wanted(), lane_);
}

}  // namespace tutti::http
