// Turns Ctrl-C, while a command follows a job, into a question to the user: cancel the job, detach,
// or go on.
#pragma once

namespace tutti::client {

// kLeave: nobody could be asked, or a second interrupt was the answer.
enum class Answer { kCancel, kGoOn, kDetach, kLeave };

// Interrupts is where interrupts come from and who answers; tests script both.
class Interrupts {
 public:
  virtual ~Interrupts() = default;
  // Returns whether one has come since the last call.
  virtual bool Take() = 0;
  // Asks the user what to do about it, once: what is no answer cancels nothing.
  virtual Answer Ask() = 0;
};

// SIGINT and SIGTERM of this process. Ask reads the terminal; where standard input or standard
// error is none, it answers kLeave. SIGTERM never asks. One at a time; restores the handlers.
class SignalInterrupts final : public Interrupts {
 public:
  SignalInterrupts();
  ~SignalInterrupts() override;
  bool Take() override;
  Answer Ask() override;
};

}  // namespace tutti::client
