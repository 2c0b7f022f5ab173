"""Pictures and recordings that a program shows: matplotlib figures, PIL images, files, bytes, data
URLs, and the blocks that tools return."""

import os
import re
import sys
from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping
from io import BytesIO
from math import sqrt
from codexec_guest_wire import encode_json

MAX_PICTURES = 10
MAX_PICTURE_BYTES = 5 << 20
TRIES_TO_SHRINK = 4

_data_url = re.compile(r"data:(?:image|audio)/[a-z+-]+;base64,", re.IGNORECASE)


def mime_of(data):
    """Returns the MIME type of a picture by its first bytes, or None."""
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return "image/png"
    if data[:3] == b"\xff\xd8\xff":
        return "image/jpeg"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def _audio_mime_of(data):
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return "audio/wav"
    if data[:3] == b"ID3" or data[:2] in (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"):
        return "audio/mpeg"
    if data[:4] == b"OggS":
        return "audio/ogg"
    return "audio/flac" if data[:4] == b"fLaC" else None


def _block_data(value):
    """Returns the kind and the base64 text of a block with a picture or a recording, or None: as
    tools return it, or the contents of a resource."""
    if not isinstance(value, Mapping):
        return None
    kind = value.get("type")
    if kind == "resource" or kind is None:
        contents = value.get("resource") if kind else value
        if not isinstance(contents, Mapping):
            return None
        kind = str(contents.get("mimeType")).partition("/")[0]
        text = contents.get("blob")
    else:
        text = value.get("data")
    return (kind, text) if kind in ("image", "audio") and isinstance(text, str) else None


def _decode(text):
    try:
        return a2b_base64(text)
    except (NotBase64, ValueError):
        return b""


def _png_size(data):
    return f"{int.from_bytes(data[16:20], 'big')}x{int.from_bytes(data[20:24], 'big')}"


def _module_class(module, name):
    # Nothing is imported for this: a module that is not loaded has no instances. An empty tuple is
    # a class without instances.
    return getattr(sys.modules.get(module), name, ())


def _figure_of(value):
    if isinstance(value, _module_class("matplotlib.figure", "Figure")):
        return value
    if isinstance(value, _module_class("matplotlib.axes", "Axes")):
        return value.get_figure()
    return None


def _is_pil_image(value):
    return isinstance(value, _module_class("PIL.Image", "Image"))


def _figure_png(figure, scale):
    buffer = BytesIO()
    if scale == 1:
        figure.savefig(buffer, format="png")
    else:
        figure.savefig(buffer, format="png", dpi=figure.dpi * scale)
    return buffer.getvalue()


def _pil_png(image, scale):
    if scale != 1:
        image = image.resize([max(1, int(side * scale)) for side in image.size])
    buffer = BytesIO()
    try:
        image.save(buffer, "PNG")
    except OSError:
        # Modes that PNG does not know, like CMYK.
        buffer = BytesIO()
        image.convert("RGB").save(buffer, "PNG")
    return buffer.getvalue()


class Pictures:
    def __init__(self, wire, note):
        self._wire = wire
        self._note = note
        self._sent = 0
        self._left_out = 0
        # Kept alive, so that no other figure gets the identity of one that was shown.
        self._figures = []

    def show_if_picture(self, value):
        """Sends a picture (a figure only once) and returns a text for it; None for other values."""
        figure = _figure_of(value)
        if figure is not None:
            return self._show_figure(figure)
        if _is_pil_image(value):
            return self._send_scaled("image", lambda scale: _pil_png(value, scale))
        block = _block_data(value)
        if block is not None:
            return self._show_block(*block)
        if callable(getattr(type(value), "_repr_png_", None)):
            data = value._repr_png_()
            if isinstance(data, bytes) and mime_of(data) == "image/png":
                self._send(data)
                return f"[image {_png_size(data)}]"
        return None

    def emit(self, value):
        """Shows a picture: a matplotlib figure, a PIL image, the bytes of a PNG, JPEG, GIF or WebP,
        the path of such a file, a data: URL, or what a tool returned: blocks with pictures,
        recordings and text."""
        if isinstance(value, Mapping) and isinstance(value.get("content"), list):
            value = value["content"]
        if isinstance(value, (list, tuple)) and value:
            for block in value:
                self.emit(block)
            return
        if isinstance(value, Mapping) and value.get("type") == "text":
            print(value.get("text", ""))
            return
        figure = _figure_of(value)
        if figure is not None:
            self._forget(figure)
            self._show_figure(figure)
        elif self.show_if_picture(value) is None:
            self._emit_data(value)

    def display(self, *values):
        """Shows each value: a picture as a picture, anything else as `print` does."""
        for value in values:
            if self.show_if_picture(value) is None:
                print(value)

    def show_open_figures(self):
        """Shows all open pyplot figures that have not been shown."""
        pylab = sys.modules.get("matplotlib._pylab_helpers")
        for manager in pylab.Gcf.get_all_fig_managers() if pylab else ():
            try:
                self._show_figure(manager.canvas.figure)
            except Exception as error:
                self._note(f"a figure could not be drawn: {type(error).__name__}: {error}")

    def finish_cell(self):
        """Shows the open figures and closes them: the next cell draws its own."""
        try:
            self.finish()
            pylab = sys.modules.get("matplotlib._pylab_helpers")
            if pylab is not None:
                pylab.Gcf.destroy_all()
        finally:
            self._sent = self._left_out = 0
            self._figures = []

    def finish(self):
        self.show_open_figures()
        if self._left_out:
            self._note(f"only {MAX_PICTURES} pictures are shown: {self._left_out} were left out")

    def _emit_data(self, value):
        where = ""
        if isinstance(value, str) and _data_url.match(value):
            data = a2b_base64(value.partition(",")[2])
        elif isinstance(value, (bytes, bytearray, memoryview)):
            data = bytes(value)
        elif isinstance(value, (str, os.PathLike)):
            where = f" {os.fspath(value)!r:.200}"
            with open(value, "rb") as file:
                data = file.read()
        else:
            data = b""
        if mime_of(data) is None and _audio_mime_of(data) is None:
            what = f"the file{where}" if where else f"a {type(value).__name__} like this one"
            raise TypeError(
                "emit shows a matplotlib figure, a PIL image, a PNG, JPEG, GIF or WebP as bytes, "
                "as the path of a file or as a data: URL, or a block that a tool returned; "
                f"{what} is none of these"
            )
        self._send(data)

    def _show_block(self, kind, text):
        """Sends the data of a block, and returns words for it: binary data never becomes text."""
        data = _decode(text)
        mime = mime_of(data) or _audio_mime_of(data)
        if mime is None:
            known = "PNG, JPEG, GIF, WebP, WAV, MP3, Ogg and FLAC are"
            self._note(f"a block of type {kind} was left out: {known} shown, and this is none")
            return f"[{kind}, not shown]"
        self._send(data)
        size = f" {_png_size(data)}" if mime == "image/png" else ""
        return f"[{kind}{size}]"

    def _forget(self, figure):
        self._figures = [known for known in self._figures if known is not figure]

    def _show_figure(self, figure):
        if any(known is figure for known in self._figures):
            return "[figure, shown before]"
        words = self._send_scaled("figure", lambda scale: _figure_png(figure, scale))
        self._figures.append(figure)
        return words

    def _send_scaled(self, what, draw):
        scale = 1
        data = draw(scale)
        for _ in range(TRIES_TO_SHRINK):
            if len(data) <= MAX_PICTURE_BYTES:
                break
            scale *= 0.9 * sqrt(MAX_PICTURE_BYTES / len(data))
            data = draw(scale)
        self._send(data)
        return f"[{what} {_png_size(data)}]"

    def _send(self, data):
        if len(data) > MAX_PICTURE_BYTES:
            limit = f"at most {MAX_PICTURE_BYTES >> 20} MiB are shown"
            self._note(f"a picture of {len(data)} bytes was left out: {limit}")
        elif self._sent >= MAX_PICTURES:
            self._left_out += 1
        else:
            self._sent += 1
            text = b2a_base64(data, newline=False).decode()
            mime = encode_json(mime_of(data) or _audio_mime_of(data))
            self._wire.say(f'{{"image":{{"mime":{mime},"base64":"{text}"}}}}')


def fill_backend(module, pictures):
    """Makes `module` a matplotlib backend: Agg with a `show` that sends the figures to the host."""
    from matplotlib._pylab_helpers import Gcf
    from matplotlib.backend_bases import FigureManagerBase
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    class FigureManager(FigureManagerBase):
        @classmethod
        def pyplot_show(cls, *_, **__):
            pictures().show_open_figures()
            # Like closing a window: the next drawing belongs to a new figure.
            Gcf.destroy_all()

        def show(self):
            pictures().show_if_picture(self.canvas.figure)

    class FigureCanvas(FigureCanvasAgg):
        manager_class = FigureManager

    def new_figure_manager_given_figure(num, figure):
        return FigureManager(FigureCanvas(figure), num)

    def new_figure_manager(num, *args, FigureClass=None, **kwargs):
        from matplotlib.figure import Figure

        return new_figure_manager_given_figure(num, (FigureClass or Figure)(*args, **kwargs))

    module.FigureManager = FigureManager
    module.FigureCanvas = FigureCanvas
    module.new_figure_manager = new_figure_manager
    module.new_figure_manager_given_figure = new_figure_manager_given_figure
    module.show = FigureManager.pyplot_show
