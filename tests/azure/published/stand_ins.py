"""Data that the published files take from elsewhere: small, made here, of the columns that their scripts read."""
import csv
import io
import random
import struct
import tarfile
import zlib

SPECIES = {"setosa": (5.0, 3.4, 1.5, 0.2), "versicolor": (5.9, 2.8, 4.3, 1.3), "virginica": (6.6, 3.0, 5.6, 2.0)}
DIABETES = ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6", "target")
TAXI = ("VendorID", "tpep_pickup_datetime", "tpep_dropoff_datetime", "passenger_count", "trip_distance", "pickup_longitude",
        "pickup_latitude", "RatecodeID", "store_and_fwd_flag", "dropoff_longitude", "dropoff_latitude", "payment_type",
        "fare_amount", "extra", "mta_tax", "tip_amount", "tolls_amount", "improvement_surcharge", "total_amount")
TITANIC = ("PassengerId", "Survived", "Pclass", "Name", "Sex", "Age", "SibSp", "Parch", "Ticket", "Fare", "Cabin", "Embarked")


def write(path, header, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def iris(chance):
    for name, centre in SPECIES.items():
        for _ in range(50):
            yield [*(round(chance.gauss(middle, 0.3), 1) for middle in centre), name]


def diabetes(chance):
    for _ in range(442):
        values = [chance.gauss(0, 0.05) for _ in DIABETES[:-1]]
        yield [*values, round(150 + 900 * values[2] + 500 * values[8] + chance.gauss(0, 30))]


def taxi(chance):
    for ride in range(2000):
        longitude, latitude, miles = -74 + chance.random() / 10, 40.7 + chance.random() / 10, 1 + 5 * chance.random()
        begin, end = (f"2015-01-{1 + ride % 28:02} {ride % 24:02}:{minute}:00" for minute in (10, 10 + int(4 * miles)))
        fare = round(3 + 2.5 * miles, 2)
        yield [1 + ride % 2, begin, end, 1 + ride % 4, round(miles, 2), longitude, latitude, 1, "N", longitude + miles / 70,
               latitude, 1 + ride % 2, fare, 0.5, 0.5, 1, 0, 0.3, fare + 2.3]


def titanic(chance):
    for number in range(1, 100):
        yield [number, number % 2, 1 + number % 3, f"Passenger {number}", ("male", "female")[number % 2],
               chance.randint(1, 80), 0, 0, f"T{number}", round(chance.uniform(5, 80), 2), "", "SCQ"[number % 3]]


def png(rows, channels):
    """Makes a PNG of rows of bytes, one for each pixel and channel; TensorFlow knows an image by its content, whatever
    its name."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    size = struct.pack(">IIBBBBB", len(rows[0]) // channels, len(rows), 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def pack(path, files):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def pets(folder, chance):
    """A square on a ground each; masks say 1 for the pet, 2 for the ground, 3 for what is between."""
    images, masks = {}, {}
    for number in range(64):
        left, top, size = chance.randint(2, 20), chance.randint(2, 20), chance.randint(20, 40)
        def part(x, y):
            near = max(left - x, x - left - size, top - y, y - top - size)
            return 1 if near < 0 else 3 if near < 2 else 2
        parts = [[part(x, y) for x in range(64)] for y in range(64)]
        masks[f"annotations/trimaps/pet_{number}.png"] = png([bytes(row) for row in parts], 1)
        images[f"images/pet_{number}.jpg"] = png([b"".join(bytes([70 * value, 40, 200 - 60 * value]) for value in row) for row in parts], 3)
    pack(folder / "images.tar.gz", images)
    pack(folder / "annotations.tar.gz", masks)


def make(folder):
    """What preparations.ADDRESSES and DATA map, below `folder`."""
    chance = random.Random(1)
    write(folder / "datasets/iris.csv", ("sepal_length", "sepal_width", "petal_length", "petal_width", "species"), iris(chance))
    write(folder / "datasets/diabetes.csv", DIABETES, diabetes(chance))
    for month in (1, 2):
        write(folder / f"datasets/nyctaxi/yellow_tripdata_2015-{month:02}.csv", TAXI, taxi(chance))
    write(folder / "demo/Titanic.csv", TITANIC, titanic(chance))
    store = folder / "datastore"
    write(store / "example-data/iris.csv", ("sepal_length", "sepal_width", "petal_length", "petal_width", "species"), iris(chance))
    write(store / "azureml/4b_datastore_datapath_uri/hello-world.txt", ("hello world",), [])
    pets(folder / "pets", chance)
    write(folder / "nyctlc/yellow/no-rides.txt", ("Spark reads Parquet, in an image that has Spark",), [])
    for name in ("data_batch_1", "test_batch"):  # torchvision knows the real ones by their hashes, and refuses these
        path = folder / f"cifar-10/cifar-10-batches-py/{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"no images")
