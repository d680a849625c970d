"""Where tutti cuts a network into stages, and what it says that these take."""
import json
import subprocess

import stage_ranks


def fields(model, batch, micro_batches, schedule, precision="fp32"):
    """As a recipe has them."""
    return [f"model={model}", f"batch={batch}", f"accumulation={micro_batches}", f"pipeline-schedule={schedule}",
            f"precision={precision}"]


def make(program, stages, words):
    """{"cut", "stages": [{"forward", "backward", "state_bytes", "activation_bytes", "working_bytes"}], "text"}, by one core alone."""
    done = subprocess.run(["taskset", "-c", str(stage_ranks.cores()[0]), program, "plan", f"parallel=pipeline={stages},data=1", *words],
                          stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise stage_ranks.Failed("the network could not be planned; the reason stands above")
    return json.loads(done.stdout)
