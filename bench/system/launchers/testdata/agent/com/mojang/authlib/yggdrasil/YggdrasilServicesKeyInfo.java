package com.mojang.authlib.yggdrasil;

import com.mojang.authlib.properties.Property;

/** The service's key. Without the agent it has made no signature. */
public final class YggdrasilServicesKeyInfo {
	public boolean validateProperty(Property property) {
		return false;
	}
}
