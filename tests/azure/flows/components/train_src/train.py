import pathlib
import sys

data, epochs, rate, schedule = sys.argv[1:5]
folder = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
rows = len((pathlib.Path(data) / "rows.txt").read_text().split())
(folder / "model.txt").write_text(f"{rows} rows, {epochs} epochs, rate {rate}, {schedule}\n")
print("resume" if "--resume" in sys.argv else "fresh")
