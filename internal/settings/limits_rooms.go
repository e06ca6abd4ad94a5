package settings

// RoomLimits bound the conversations and invitations of accounts.
type RoomLimits struct {
	// RoomsPerAccount bounds the conversations that an account is in, PendingInvitations those that a person
	// is invited to, and InvitationsPerDay the invitations that an account sends.
	RoomsPerAccount, PendingInvitations, InvitationsPerDay int64
}

// defaultRoomLimits: a list of chats sorts all conversations of the person, some milliseconds for 10,000.
func defaultRoomLimits() RoomLimits {
	return RoomLimits{RoomsPerAccount: 10_000, PendingInvitations: 100, InvitationsPerDay: 200}
}

func (r *RoomLimits) list() []Limit {
	return []Limit{
		{"rooms-per-account", UnitCount, 1, 1_000_000, &r.RoomsPerAccount},
		{"pending-invitations", UnitCount, 1, 1000, &r.PendingInvitations},
		{"invitations-per-day", UnitCount, 1, 1_000_000, &r.InvitationsPerDay},
	}
}
