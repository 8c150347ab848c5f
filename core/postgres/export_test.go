package postgres

// What other parts of the package do within their transactions.
var (
	Charge        = charge
	LockScoresOf  = lockScoresOf
	MoveCost      = moveCost
	RefundTexture = refundTexture
)
