package message

import "agentsite/internal/chat"

// Pictures returns the addresses of other sites that a message names as pictures, as it is now.
func (d *Renderer) Pictures(m chat.Message) (list []string) {
	for _, part := range m.Parts {
		if part.Text != "" {
			list = append(list, d.markup.Pictures(part.Text)...)
		}
	}
	return list
}
