package com.mojang.authlib.yggdrasil;

/** The session service. Without the agent no host may have textures. */
public final class YggdrasilMinecraftSessionService {
	private YggdrasilMinecraftSessionService() {}

	public static boolean isWhitelistedDomain(String address) {
		return false;
	}
}
