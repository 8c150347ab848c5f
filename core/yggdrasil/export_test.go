package yggdrasil

// Routes returns the paths of the routes by method.
func (s *Server) Routes() map[string][]string { return s.routes().List() }
