import json
import os
import sys

cluster = json.loads(os.environ["TF_CONFIG"])
print(cluster["task"]["type"], cluster["task"]["index"], "of", len(cluster["cluster"]["worker"]), sys.argv[1:])
os.makedirs(sys.argv[4], exist_ok=True)
if cluster["task"]["index"] == 0:
    open(f"{sys.argv[4]}/saved", "w").close()
