package templates

import (
	"context"
	"net/url"
)

// PersonPictureHref returns the address of a person's picture.
func PersonPictureHref(name, hash string) string {
	return "/people/" + url.PathEscape(name) + "/picture?v=" + hash
}

// facesKey is the key of the function in a context that finds the pictures of people.
type facesKey struct{}

// WithFaces returns a context in which pages show the pictures of people. hashOf returns the hash of the picture that
// all may see of the person with a name, "" for none.
func WithFaces(ctx context.Context, hashOf func(name string) string) context.Context {
	return context.WithValue(ctx, facesKey{}, hashOf)
}

// personPicture returns the address of a person's picture; "" for none.
func personPicture(ctx context.Context, name string) string {
	hashOf, ok := ctx.Value(facesKey{}).(func(string) string)
	if !ok {
		return ""
	}
	if hash := hashOf(name); hash != "" {
		return PersonPictureHref(name, hash)
	}
	return ""
}
