// Package picture re-encodes pictures at a smaller size, so that no other data of the original file
// is passed on: no location, no camera model, no trailing data. It bounds the pixels that it
// decodes.
package picture

import (
	"bytes"
	"errors"
	"image"
	_ "image/gif" // decoders register themselves; these formats are common
	_ "image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp"
)

// Pixels bounds the decoded pixels of an icon, PhotoPixels those of a camera picture. The bounds are
// needed because a small file may decode to a large image.
const (
	Pixels      = 4 << 20
	PhotoPixels = 16 << 20
)

// maxScans bounds how often a JPEG goes over all its pixels: each scan costs some bytes of the file and
// milliseconds of the decoder. Cameras and editors write at most a dozen.
const maxScans = 32

// Problems of a picture, as sentences to show to its sender. IsFaulty recognizes them.
var (
	ErrFormat  = errors.New("use a PNG, JPEG, GIF or WebP picture")
	ErrSize    = errors.New("the picture has too many pixels")
	ErrScans   = errors.New("this picture is stored in too many steps; save it anew")
	ErrDamaged = errors.New("this picture is damaged; save it anew")
	ErrEmpty   = errors.New("this picture is empty")
)

// IsFaulty reports whether err is a problem of the picture itself and may be shown to its sender.
// Other errors are faults of this portal.
func IsFaulty(err error) bool {
	for _, e := range []error{ErrFormat, ErrSize, ErrScans, ErrDamaged, ErrEmpty} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// decodeImage decodes a picture that has at most the given number of pixels. All errors are ones
// that IsFaulty recognizes.
func decodeImage(b []byte, pixels int) (image.Image, error) {
	conf, format, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return nil, ErrFormat
	}
	if format == "jpeg" {
		// FF DA starts a scan. Image data cannot contain these two bytes, because JPEG escapes FF
		// there.
		scans := bytes.Count(b, []byte{0xFF, 0xDA})
		if scans > maxScans {
			return nil, ErrScans
		}
		if scans > 2 { // a baseline JPEG has one scan, and an embedded thumbnail may add one
			// a progressive JPEG needs more memory: its coefficients are held until the last scan
			pixels = min(pixels, Pixels)
		}
	}
	if conf.Width < 1 || conf.Height < 1 || conf.Width > pixels/conf.Height {
		return nil, ErrSize
	}
	src, _, err := image.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, ErrDamaged
	}
	if r := src.Bounds(); r.Dx() < 1 || r.Dy() < 1 {
		return nil, ErrEmpty
	}
	return src, nil
}

// CropSquare returns the square in the middle of a picture, scaled to side × side pixels, as a PNG.
// The picture may have at most Pixels pixels.
func CropSquare(b []byte, side int) ([]byte, error) {
	src, err := decodeImage(b, Pixels)
	if err != nil {
		return nil, err
	}
	r := src.Bounds()
	n := min(r.Dx(), r.Dy())
	at := image.Pt(r.Min.X+(r.Dx()-n)/2, r.Min.Y+(r.Dy()-n)/2)
	return scaleToPNG(src, image.Rectangle{at, at.Add(image.Pt(n, n))}, side, side)
}

// ScaleToFit returns the whole picture as a PNG, scaled down if its longer side has more than side
// pixels. The picture may have at most PhotoPixels pixels.
func ScaleToFit(b []byte, side int) ([]byte, error) {
	src, err := decodeImage(b, PhotoPixels)
	if err != nil {
		return nil, err
	}
	r := src.Bounds()
	w, h := r.Dx(), r.Dy()
	if long := max(w, h); long > side {
		w, h = max(1, w*side/long), max(1, h*side/long)
	}
	return scaleToPNG(src, r, w, h)
}

func scaleToPNG(src image.Image, from image.Rectangle, w, h int) ([]byte, error) {
	dst := image.NewNRGBA(image.Rect(0, 0, w, h))
	draw.CatmullRom.Scale(dst, dst.Bounds(), src, from, draw.Src, nil)
	var out bytes.Buffer
	if err := png.Encode(&out, dst); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
