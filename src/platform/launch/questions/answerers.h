// Answerers are what a launcher answers to each kind of question (question_answers.h).
#pragma once

#include "platform/launch/delivery/delivery.h"
#include "platform/launch/node/spool.h"
#include "platform/launch/questions/question_answers.h"
#include "platform/launch/stacks/stack_reading.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Reads the stacks of ranks. `spool`, whose secrets are hidden in them, outlives what is returned.
Answerer AnswererOfStacks(StackTools tools, const Spool* spool);

// Sends the results that there are now, over a connection of its own, which `abandon` breaks off.
// What it has sent before is sent again once it has changed. Both outlive what is returned.
Answerer AnswererOfResults(const spec::LaunchPlan& plan, Delivery* delivery);

}  // namespace tutti::launch
