"""Counts the images of each class and names files that are no JPEG; the last line and report.json have the sums."""
import json
import pathlib
import sys

images, report = map(pathlib.Path, sys.argv[1:])
count, wrong = {}, []
for path in sorted(images.glob("*/*/*")):
    content = path.read_bytes()
    if content[:3] != b"\xff\xd8\xff" or b"\xff\xd9" not in content[-64:]:
        wrong.append(str(path.relative_to(images)))
    place = "/".join(path.relative_to(images).parts[:2])
    count[place] = count.get(place, 0) + 1
for place, number in count.items():
    print(f"{place}: {number} images")
(report / "report.json").write_text(json.dumps({"images": count, "not_jpeg": wrong}, indent=1))
print(f"{sum(count.values())} images, {len(wrong)} of them are no JPEG: {' '.join(wrong[:3]) or 'all are well'}")
sys.exit(1 if wrong or not count else 0)
