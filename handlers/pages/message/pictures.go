package message

import "agentsite/internal/chat"

// FindPictures returns the addresses of other sites that a message names as pictures, as it is now.
func (d *Renderer) FindPictures(m chat.Message) (list []string) {
	for _, part := range m.Parts {
		if part.Text != "" {
			list = append(list, d.markup.FindPictures(part.Text)...)
		}
	}
	return list
}
