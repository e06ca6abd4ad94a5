package picture

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"
)

func pngOf(t *testing.T, w, h int) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for x := range w {
		m.Set(x, 0, color.NRGBA{200, 0, 0, 255})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func size(t *testing.T, b []byte) (w, h int) {
	t.Helper()
	c, format, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil || format != "png" {
		t.Fatal(format, err)
	}
	return c.Width, c.Height
}

func TestFit_KeepsTheShape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ w, h, side, wantW, wantH int }{
		{100, 50, 640, 100, 50}, {1280, 320, 640, 640, 160}, {320, 1280, 640, 160, 640}, {2000, 1, 640, 640, 1}, {1, 1, 640, 1, 1}, {641, 641, 640, 640, 640},
	} {
		b, err := ScaleToFit(pngOf(t, c.w, c.h), c.side)
		if err != nil {
			t.Fatal(err)
		}
		if w, h := size(t, b); w != c.wantW || h != c.wantH {
			t.Errorf("%d×%d became %d×%d", c.w, c.h, w, h)
		}
	}
	b, err := CropSquare(pngOf(t, 300, 20), 128)
	if err != nil {
		t.Fatal(err)
	}
	if w, h := size(t, b); w != 128 || h != 128 {
		t.Errorf("%d×%d", w, h)
	}
}

func TestFit_NothingElseOfTheFileSurvives(t *testing.T) {
	t.Parallel()
	secret := []byte("GPS 48.1 11.5")
	b, err := ScaleToFit(append(pngOf(t, 10, 10), secret...), 640)
	if err != nil || bytes.Contains(b, secret) {
		t.Error(err)
	}
}

func TestDecode_Refuses(t *testing.T) {
	t.Parallel()
	var j bytes.Buffer
	if err := jpeg.Encode(&j, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		t.Fatal(err)
	}
	bomb := bytes.Clone(pngOf(t, 1, 1)[:33]) // says 60000×60000
	copy(bomb[16:], []byte{0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60})
	for what, c := range map[string]struct {
		b    []byte
		want error
	}{
		"text":       {[]byte("hello"), ErrFormat},
		"nothing":    {nil, ErrFormat},
		"an svg":     {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), ErrFormat},
		"half":       {pngOf(t, 100, 100)[:80], ErrDamaged},
		"many scans": {append(j.Bytes(), bytes.Repeat([]byte{0xFF, 0xDA}, maxScans)...), ErrScans},
	} {
		if _, err := ScaleToFit(c.b, 640); !errors.Is(err, c.want) || !IsFaulty(err) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	if _, err := ScaleToFit(bomb, 640); !IsFaulty(err) {
		t.Errorf("a bomb: %v", err)
	}
	large := pngOf(t, 3000, 2000) // 6 million pixels
	if _, err := CropSquare(large, 128); !errors.Is(err, ErrSize) {
		t.Errorf("an icon: %v", err)
	}
	if _, err := ScaleToFit(large, 640); err != nil {
		t.Errorf("a photo: %v", err)
	}
	if IsFaulty(errors.New("x")) || IsFaulty(nil) {
		t.Error("other errors are no faults of the picture")
	}
}
