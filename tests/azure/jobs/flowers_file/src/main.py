import argparse
import csv
import pathlib

from sklearn.svm import SVC

parser = argparse.ArgumentParser()
parser.add_argument("--csv")
parser.add_argument("--c", type=float)
parser.add_argument("--kernel")
args = parser.parse_args()
with open(args.csv) as file:
    rows = list(csv.DictReader(file))
x = [[float(row["length"]), float(row["width"])] for row in rows]
y = [row["species"] for row in rows]
model = SVC(C=args.c, kernel=args.kernel).fit(x, y)
pathlib.Path("outputs/accuracy.txt").write_text(f"{model.score(x, y):.2f}\n")
pathlib.Path("logs/main.log").write_text("trained\n")
print("accuracy", model.score(x, y))
