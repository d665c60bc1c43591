"""Images are read from every layout alike; what cannot be read is counted, named and skipped."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageOps

from regard.data.badlines import BadLines
from regard.data.images import open_album, read_idx, write_idx
from regard.data.images_decode import Framing, Unreadable, decode
from regard.data.images_prepare import Images, Wishes, prepare_images
from regard.data.prepare import Silent
from regard.errors import UserError

SIDE = 8
FRAMING = Framing(SIDE, SIDE, 3)


def pixels(number: int, height: int = SIDE, width: int = SIDE, channels: int = 3) -> NDArray[np.uint8]:
    random = np.random.default_rng(number)
    return random.integers(0, 256, (height, width, channels), np.uint8)


def png(values: NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG")
    return file.getvalue()


def label(number: int) -> str:
    return ["cat", "dog", "owl"][number % 3]


COUNT = 60


@pytest.fixture(params=["folders", "split folders", "csv", "tsv", "jsonl", "parquet", "parquet named", "idx", "idx gz"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The same images in every layout."""
    kind = request.param
    if kind in ("folders", "split folders"):
        root = tmp_path / "train" if kind == "split folders" else tmp_path
        for number in range(COUNT):
            path = root / label(number) / "deeper" / f"{number:03}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(pixels(number)))
        return tmp_path
    if kind in ("csv", "tsv", "jsonl"):
        (tmp_path / "files").mkdir()
        rows = [{"path": f"files/{number:03}.png", "label": label(number)} for number in range(COUNT)]
        for number in range(COUNT):
            (tmp_path / rows[number]["path"]).write_bytes(png(pixels(number)))
        path = tmp_path / f"all.{kind}"
        with path.open("w", encoding="utf8", newline="") as file:
            if kind == "jsonl":
                file.writelines(json.dumps(row) + "\n" for row in rows)
            else:
                writer = csv.DictWriter(file, ["path", "label"], delimiter="\t" if kind == "tsv" else ",")
                writer.writeheader()
                writer.writerows(rows)
        return path
    if kind.startswith("parquet"):
        images = [{"bytes": png(pixels(number)), "path": None} for number in range(COUNT)]
        if kind == "parquet":
            table = pa.table({"image": images, "label": [label(number) for number in range(COUNT)]})
        else:
            features = {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog", "owl"], "_type": "ClassLabel"}}
            table = pa.table({"image": images, "label": [number % 3 for number in range(COUNT)]})
            table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
        pq.write_table(table, tmp_path / "train-00000.parquet", row_group_size=7)
        return tmp_path
    end = ".gz" if kind == "idx gz" else ""
    write_idx(tmp_path / f"train-images-idx4-ubyte{end}", np.stack([pixels(number) for number in range(COUNT)]))
    write_idx(tmp_path / f"train-labels-idx1-ubyte{end}", np.array([number % 3 for number in range(COUNT)], np.uint8))
    return tmp_path


def prepared(source: Path, cache: Path, framing: Framing = FRAMING, **wishes: object) -> Images:
    given = {"valid_count": 6, "test_count": 6, "share": 0.1, **wishes}
    return prepare_images(Wishes([str(source)], **given), framing, cache, Silent())  # type: ignore[arg-type]


def test_every_layout_gives_the_same_images(source: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    cache = tmp_path_factory.mktemp("cache")
    images = prepared(source, cache)
    names = ["0", "1", "2"] if list(source.glob("*idx*")) else ["cat", "dog", "owl"]
    assert images.classes == names
    found = {one.tobytes(): names[number] for one, number in zip(images.pixels, images.labels, strict=True)}
    assert found == {pixels(number).tobytes(): names[number % 3] for number in range(COUNT)}
    assert {name: len(rows) for name, rows in images.rows.items()} == {"train": 48, "valid": 6, "test": 6}
    assert len(np.unique(np.concatenate(list(images.rows.values())))) == COUNT, "every image is in one split"
    assert "all 60 images were usable" in images.summary
    before = list(cache.iterdir())
    assert np.array_equal(prepared(source, cache).pixels, images.pixels)
    assert list(cache.iterdir()) == before, "the second time it is found"


def test_mean_and_deviation_are_those_of_the_training_images(tmp_path: Path) -> None:
    write_idx(tmp_path / "train-images-idx3-ubyte", np.stack([pixels(n, channels=1)[..., 0] for n in range(COUNT)]))
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.arange(COUNT, dtype=np.uint8) % 3)
    images = prepared(tmp_path, tmp_path / "cache", Framing(SIDE, SIDE, 1))
    seen = images.pixels[images.rows["train"]] / 255
    assert images.framing.mean == pytest.approx([seen.mean()], abs=1e-5)
    assert images.framing.deviation == pytest.approx([seen.std()], abs=1e-5)
    shown = images.framing.shown(images.pixels[images.rows["train"]])
    assert shown.shape == (48, 1, SIDE, SIDE)
    assert float(shown.mean()) == pytest.approx(0, abs=1e-3)
    assert float(shown.std()) == pytest.approx(1, abs=1e-3)


def test_splits_by_name_and_copies_that_stay_together(tmp_path: Path) -> None:
    for name, first in (("train", 0), ("t10k", 100)):
        values = np.stack([pixels(first + number // 2, channels=1)[..., 0] for number in range(40)])  # each twice
        write_idx(tmp_path / f"{name}-images-idx3-ubyte.gz", values)
        write_idx(tmp_path / f"{name}-labels-idx1-ubyte.gz", np.arange(40, dtype=np.uint8) // 2 % 4)
    images = prepared(tmp_path, tmp_path / "cache", Framing(SIDE, SIDE, 1))
    assert {name: len(rows) for name, rows in images.rows.items()} == {"train": 36, "valid": 4, "test": 40}
    held = {images.pixels[row].tobytes() for row in images.rows["valid"]}
    assert not held & {images.pixels[row].tobytes() for row in images.rows["train"]}
    given = {pixels(100 + number, channels=1).tobytes() for number in range(20)}
    assert {images.pixels[row].tobytes() for row in images.rows["test"]} == given


def test_files_given_by_name_are_the_test_and_the_validation(tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 20), ("c", 40)):
        for number in range(first, first + 12):
            path = tmp_path / name / label(number) / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(pixels(number)))
    wishes = Wishes([str(tmp_path / "a")], valid=[str(tmp_path / "b")], test=[str(tmp_path / "c")])
    images = prepare_images(wishes, FRAMING, tmp_path / "cache", Silent())
    assert {name: len(rows) for name, rows in images.rows.items()} == {"train": 12, "valid": 12, "test": 12}
    assert images.pixels[images.rows["test"][0]].tobytes() in {pixels(number).tobytes() for number in range(40, 52)}


def test_the_name_of_a_file_does_not_decide_against_what_it_is_given_as(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for name, numbers in (("test.csv", range(40)), ("valid.csv", range(40, 50))):
        rows = ["path,label"]
        for number in numbers:
            (tmp_path / "files" / f"{number}.png").write_bytes(png(pixels(number)))
            rows.append(f"files/{number}.png,{label(number)}")
        (tmp_path / name).write_text("\n".join(rows) + "\n", encoding="utf8")
    data = prepared(tmp_path / "test.csv", tmp_path / "cache", valid=[str(tmp_path / "valid.csv")], test_count=0)
    assert (len(data.rows["train"]), len(data.rows["valid"])) == (40, 10)


def test_an_image_that_has_changed_is_decoded_anew(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.png").write_bytes(png(pixels(number)))
    rows = "".join(f"{number}.png,{label(number)}\n" for number in range(6))
    (tmp_path / "all.csv").write_text(f"path,label\n{rows}", encoding="utf8")
    before = prepared(tmp_path / "all.csv", tmp_path / "cache", valid_count=0, test_count=0).pixels[0].copy()
    (tmp_path / "0.png").write_bytes(png(pixels(99)))
    after = prepared(tmp_path / "all.csv", tmp_path / "cache", valid_count=0, test_count=0).pixels[0]
    assert not np.array_equal(before, after)


def good_folders(root: Path, count: int = 30) -> None:
    for number in range(count):
        path = root / label(number) / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(pixels(number)))


def test_bad_files_are_counted_named_and_skipped(tmp_path: Path) -> None:
    root = tmp_path / "photos"
    good_folders(root)
    whole = png(pixels(77, 64, 64))
    (root / "cat" / "cut.png").write_bytes(whole[: len(whole) // 2])
    (root / "dog" / "notes.txt").write_text("no image", encoding="utf8")
    (root / "dog" / "empty.jpg").write_bytes(b"")
    (root / "owl" / ".hidden").write_text("not looked at", encoding="utf8")
    (root / "fish").mkdir()
    (root / "readme.md").write_text("loose", encoding="utf8")
    images = prepared(root, tmp_path / "cache", max_bad_share=0.2)
    assert len(images.pixels) == 30
    assert images.classes == ["cat", "dog", "owl"]
    assert "3 of 33 images were left out" in images.summary
    for name in ("cat/cut.png", "dog/notes.txt", "dog/empty.jpg"):
        assert name in images.summary
    assert "the class folder" in images.summary
    assert "fish' is not among the classes" in images.summary
    assert "1 file of" in images.summary
    listed = (images.folder / "bad_images.tsv").read_text(encoding="utf8")
    assert listed.count("no readable image") == 3
    with pytest.raises(UserError, match=r"9\.1% of the images \(3 of 33\) cannot be used, data.max_bad_share = 0.05"):
        prepared(root, tmp_path / "other", max_bad_share=0.05)


def test_odd_images_are_read(tmp_path: Path) -> None:
    """One pixel, a strip, grey, palette, alpha, 16 bits, CMYK, an animation: all become a square of bytes."""
    base = Image.fromarray(pixels(5, 20, 30))
    kinds = {
        "pixel.png": Image.new("RGB", (1, 1), (10, 20, 30)),
        "strip.png": Image.new("RGB", (3000, 1), (10, 20, 30)),
        "grey.png": base.convert("L"),
        "bits.png": base.convert("1"),
        "palette.gif": base.convert("P"),
        "alpha.png": base.convert("RGBA"),
        "grey-alpha.png": base.convert("LA"),
        "deep.png": Image.fromarray((np.arange(600).reshape(20, 30) * 100).astype(np.uint16)),
        "cmyk.jpg": base.convert("CMYK"),
    }
    for name, image in kinds.items():
        image.save(tmp_path / name)
        for channels in (1, 3):
            framing = Framing(SIDE, SIDE, channels)
            assert framing.pixels(tmp_path / name).shape == (SIDE, SIDE, channels), name
    assert (FRAMING.pixels(tmp_path / "pixel.png") == [10, 20, 30]).all()
    assert (FRAMING.pixels(tmp_path / "strip.png") == [10, 20, 30]).all()
    deep = Framing(SIDE, SIDE, 1).pixels(tmp_path / "deep.png").astype(int)
    assert 0 < deep.min() < deep.max() <= 599 * 100 / 257 + 1, "16 bits are scaled, not cut off"


def test_what_is_transparent_becomes_white_and_grey_becomes_colour(tmp_path: Path) -> None:
    clear = np.zeros((4, 4, 4), np.uint8)
    clear[:2] = [10, 20, 30, 255]
    found = np.asarray(decode(png(clear), 3))
    assert (found[:2] == [10, 20, 30]).all()
    assert (found[2:] == 255).all()
    grey = pixels(1, 4, 4, 1)[..., 0]
    assert (np.asarray(decode(png(grey), 3)) == grey[..., None]).all()
    assert (np.asarray(decode(grey, 1)) == grey).all()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_stand_upright(orientation: int, tmp_path: Path) -> None:
    image = Image.fromarray(pixels(3, 6, 9))
    exif = image.getexif()
    exif[0x0112] = orientation
    image.save(tmp_path / "turned.png", exif=exif)
    expected = ImageOps.exif_transpose(Image.open(tmp_path / "turned.png"))
    assert expected.size == ((6, 9) if orientation > 4 else (9, 6))
    assert np.array_equal(np.asarray(decode(tmp_path / "turned.png", 3)), np.asarray(expected))


def test_fit_keeps_the_middle_or_the_whole() -> None:
    wide = np.zeros((8, 16, 3), np.uint8)
    wide[:, 4:12] = 200
    assert (Framing(8, 8, 3, "crop").pixels(wide) == 200).all()
    squashed = Framing(8, 8, 3, "squash").pixels(wide)
    assert (squashed[:, 0] < 100).all()
    assert (squashed[:, 4] == 200).all()
    stored = Framing(4, 8, 3, mean=(0.0,) * 3, deviation=(1.0,) * 3)
    shown = stored.shown(pixels(1)[None])
    assert np.allclose(shown[0].permute(1, 2, 0).numpy(), pixels(1)[2:6, 2:6] / 255)


def test_a_file_that_claims_to_be_huge_is_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.data import images_decode

    (tmp_path / "big.png").write_bytes(png(pixels(1, 40, 50)))
    monkeypatch.setattr(images_decode, "MOST_PIXELS", 1999)
    with pytest.raises(Unreadable, match="50 x 40 pixels, at most 1,999") as caught:
        decode(tmp_path / "big.png", 3)
    assert caught.value.reason == "pixels"


def test_tables_name_what_is_missing(tmp_path: Path) -> None:
    good_folders(tmp_path / "files")
    table = tmp_path / "all.csv"
    rows = ["file,class,else"] + [f"files/{label(n)}/{n}.png,{label(n)},x" for n in range(30)]
    table.write_text("\n".join([*rows, "files/none.png,cat,x", "files/cat/0.png,,x"]) + "\n", encoding="utf8")
    images = prepared(table, tmp_path / "cache", max_bad_share=0.2)
    assert len(images.pixels) == 30
    assert "2 of 32 images were left out" in images.summary
    assert "1 no such file (image 32 of all.csv)" in images.summary
    with pytest.raises(UserError, match=r"columns = a,b: .*all\.csv has file, class, else"):
        list(open_album([table], ["a", "b"]).read("train", BadLines()))


def test_a_table_without_a_header_loses_no_image(tmp_path: Path) -> None:
    good_folders(tmp_path / "files")
    rows = [f"files/{label(n)}/{n}.png, {label(n)}" for n in range(30)]
    (tmp_path / "all.csv").write_text("\n".join(rows) + "\n", encoding="utf8")
    for columns in (None, ["0", "1"]):
        images = prepared(tmp_path / "all.csv", tmp_path / "cache", columns=columns)
        assert (len(images.pixels), images.classes) == (30, ["cat", "dog", "owl"]), columns


def test_of_every_class_an_image_is_trained_on(tmp_path: Path) -> None:
    for number in range(13):
        path = tmp_path / "photos" / ("owl" if number == 12 else label(number % 2)) / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(pixels(number)))
    for seed in range(40):
        images = prepared(tmp_path / "photos", tmp_path / f"cache{seed}", seed=seed)
        assert set(images.labels[images.rows["train"]]) == {0, 1, 2}, seed
        assert sum(map(len, images.rows.values())) == 13


def test_names_that_are_no_letters_can_be_kept(tmp_path: Path) -> None:
    good_folders(tmp_path / "photos")
    (tmp_path / "photos" / "cat").rename(os.fsdecode(os.fsencode(tmp_path / "photos") + b"/caf\xe9"))
    images = prepared(tmp_path / "photos", tmp_path / "cache")
    assert images.classes == ["caf\ufffd", "dog", "owl"]
    json.dumps(images.names, ensure_ascii=False).encode()


def test_a_pattern_names_several_files(tmp_path: Path) -> None:
    for number in range(2):
        images = [{"bytes": png(pixels(number * 30 + one)), "path": None} for one in range(30)]
        pq.write_table(
            pa.table({"image": images, "label": [one % 3 for one in range(30)]}), tmp_path / f"{number}.parquet"
        )
    assert len(prepared(tmp_path / "*.parquet", tmp_path / "cache").pixels) == 60


def test_classes_that_were_not_trained_on_are_counted(tmp_path: Path) -> None:
    good_folders(tmp_path / "photos" / "train")
    good_folders(tmp_path / "photos" / "test", 6)
    (tmp_path / "photos" / "test" / "yak").mkdir()
    (tmp_path / "photos" / "test" / "yak" / "1.png").write_bytes(png(pixels(99)))
    images = prepared(tmp_path / "photos", tmp_path / "cache", max_bad_share=0.2)
    assert len(images.rows["test"]) == 6
    assert "1 of a class that is not trained on (yak/1.png)" in images.summary


@pytest.mark.parametrize("names", [("train", "test", "extra"), ("Training", "Testing")])
def test_folders_of_splits_are_no_classes(tmp_path: Path, names: tuple[str, ...]) -> None:
    for place, name in enumerate(names):
        good_folders(tmp_path / "photos" / name, 12 - 3 * place)
    images = prepared(tmp_path / "photos", tmp_path / "cache")
    assert (images.classes, len(images.rows["test"])) == (["cat", "dog", "owl"], 9)
    assert ("extra: not read" in images.summary) == ("extra" in names)


def test_the_split_may_stand_anywhere_in_a_name(tmp_path: Path) -> None:
    for name, count in (("emnist-letters-train", 40), ("emnist-letters-Test", 8)):
        values = np.stack([pixels(count * 10 + number, channels=1)[..., 0] for number in range(count)])
        write_idx(tmp_path / f"{name}-images-idx3-ubyte.gz", values)
        write_idx(tmp_path / f"{name}-labels-idx1-ubyte.gz", np.arange(count, dtype=np.uint8) % 4)
    assert len(prepared(tmp_path, tmp_path / "cache", Framing(SIDE, SIDE, 1)).rows["test"]) == 8


@pytest.mark.parametrize("number", [-1, 3])
def test_a_label_that_has_no_name_is_none(tmp_path: Path, number: int) -> None:
    """`datasets` writes -1 where labels are not to be known."""
    features = {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog", "owl"], "_type": "ClassLabel"}}
    images = [{"bytes": png(pixels(number)), "path": None} for number in range(COUNT)]
    table = pa.table({"image": images, "label": [number, *(one % 3 for one in range(1, COUNT))]})
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(table, tmp_path / "train.parquet")
    found = prepared(tmp_path, tmp_path / "cache")
    assert sum(map(len, found.rows.values())) == COUNT - 1
    assert "1 without a label" in found.summary


def test_a_stray_quotation_mark_swallows_no_images(tmp_path: Path) -> None:
    good_folders(tmp_path / "files", 30)
    files = sorted((tmp_path / "files").rglob("*.png"))
    for name, mark in (("a.csv", ","), ("a.tsv", "\t")):
        rows = [f"{file}{mark}{file.parent.name}" for file in files]
        rows[4] = rows[4].replace(mark, f'{mark}"')
        (tmp_path / name).write_text("\n".join([f"path{mark}label", *rows]), encoding="utf8")
    with pytest.raises(UserError, match="a quotation mark is opened and not closed"):
        prepared(tmp_path / "a.csv", tmp_path / "cache")
    assert len(prepared(tmp_path / "a.tsv", tmp_path / "cache").labels) == 30, "there it is a character"


def test_numbered_classes_can_be_named(tmp_path: Path) -> None:
    write_idx(tmp_path / "train-images-idx3-ubyte", np.stack([pixels(n, channels=1)[..., 0] for n in range(48)]))
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.arange(48, dtype=np.uint8) % 12)
    names = [f"name {number}" for number in range(12)]
    named = prepared(tmp_path, tmp_path / "one", class_names=names)
    assert (named.classes, named.called) == (names, [str(number) for number in range(12)])
    assert prepared(tmp_path, tmp_path / "two").classes == [str(number) for number in range(12)], "in counting order"
    with pytest.raises(UserError, match="class_names: 11 names for 12 classes"):
        prepared(tmp_path, tmp_path / "three", class_names=names[1:])
    with pytest.raises(UserError, match="class_names: 'name 1' is there twice"):
        prepared(tmp_path, tmp_path / "four", class_names=[*names[1:], "name 1"])


def test_what_is_no_source_is_said(tmp_path: Path) -> None:
    def refused(path: Path, text: str) -> None:
        with pytest.raises(UserError, match=text):
            prepared(path, tmp_path / "cache")

    refused(tmp_path / "none", "there is no such file or folder; give a folder with a folder per class")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", r"no folder per class in it \(empty\)")
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "1.png").write_bytes(png(pixels(1)))
    refused(tmp_path / "flat", r"no folder per class in it \(found 1.png\)")
    (tmp_path / "hollow" / "cat").mkdir(parents=True)
    refused(tmp_path / "hollow", "no images found; give(.|\n)*hollow/cat holds no image")
    (tmp_path / "parted" / "train").mkdir(parents=True)
    (tmp_path / "parted" / "train" / "1.png").write_bytes(png(pixels(1)))
    refused(tmp_path / "parted", r"no folder per class in it \(found train\)")
    good_folders(tmp_path / "one", 1)
    refused(tmp_path / "one", "only one class, 'cat'")
    (tmp_path / "bad" / "cat").mkdir(parents=True)
    (tmp_path / "bad" / "cat" / "1.png").write_bytes(b"nothing")
    refused(tmp_path / "bad", "no image can be read|cannot be used")
    (tmp_path / "x.bin").write_bytes(b"1")
    refused(tmp_path / "x.bin", "not a source of images")
    (tmp_path / "x.parquet").write_bytes(b"1")
    refused(tmp_path / "x.parquet", "cannot be read as Parquet")


def test_idx_files_say_what_is_wrong(tmp_path: Path) -> None:
    values = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    for name in ("a", "a.gz"):
        write_idx(tmp_path / name, values)
        assert np.array_equal(read_idx(tmp_path / name), values)
    data = gzip.decompress((tmp_path / "a.gz").read_bytes())
    for content, text in (
        (data[:-1], "has 39 bytes, 40 expected"), (data[:14], "has 14 bytes"), (b"PNG", "not an IDX file"),
        (b"", "not an IDX"),
    ):  # fmt: skip
        (tmp_path / "b").write_bytes(content)
        with pytest.raises(UserError, match=text):
            read_idx(tmp_path / "b")
    (tmp_path / "b.gz").write_bytes((tmp_path / "a.gz").read_bytes()[:-9])
    with pytest.raises(UserError, match="damaged or cut short"):
        read_idx(tmp_path / "b.gz")
    write_idx(tmp_path / "train-images-idx3-ubyte", values)
    with pytest.raises(UserError, match=r"no labels beside it \(train-labels-idx1-ubyte is missing\)"):
        prepared(tmp_path / "train-images-idx3-ubyte", tmp_path / "cache")
    write_idx(tmp_path / "train-images-idx4-ubyte", np.zeros((2, 3, 4, 5), np.uint8))
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.zeros(2, np.uint8))
    with pytest.raises(UserError, match="no image can be read"):  # five channels
        prepared(tmp_path / "train-images-idx4-ubyte", tmp_path / "cache")
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.zeros(3, np.uint8))
    with pytest.raises(UserError, match="not images and their labels"):
        prepared(tmp_path / "train-images-idx3-ubyte", tmp_path / "cache")


def test_a_damaged_folder_is_found_when_it_is_opened(tmp_path: Path) -> None:
    good_folders(tmp_path / "photos")
    images = prepared(tmp_path / "photos", tmp_path / "cache")
    with (images.folder / "pixels.bytes").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(UserError, match="cut short"):
        Images.open(images.folder)
