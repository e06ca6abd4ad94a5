package app

import (
	"context"
	"io"

	"agentsite/internal/chat"
	"agentsite/internal/ident"
	"agentsite/internal/library"
)

// libraryContents implements library.Contents with the files of conversations. It refers to the portal, because that
// service is built later.
type libraryContents struct{ portal *Portal }

// PutContent implements library.Contents.
func (l libraryContents) PutContent(ctx context.Context, person ident.Actor, name, mediaType string,
	r io.Reader) (library.Content, error) {
	f, err := l.portal.chats.Files.Put(ctx, person, chat.FileDraft{Name: name, MediaType: mediaType, Content: r})
	return library.Content{Hash: f.Hash, MediaType: f.MediaType, Size: f.Size}, err
}

// OpenContent implements library.Contents.
func (l libraryContents) OpenContent(ctx context.Context, person ident.Actor, hash string) (library.Content,
	io.ReadSeekCloser, error) {
	f, r, err := l.portal.chats.Files.Open(ctx, person, hash)
	return library.Content{Hash: f.Hash, MediaType: f.MediaType, Size: f.Size}, r, err
}
