package com.mojang.authlib.properties;

import java.security.PublicKey;

/** A property of a profile. Without the agent no signature is valid. */
public final class Property {
	private final String name;
	private final String value;
	private final String signature;

	public Property(String name, String value, String signature) {
		this.name = name;
		this.value = value;
		this.signature = signature;
	}

	public String getName() {
		return name;
	}

	public String getValue() {
		return value;
	}

	public String getSignature() {
		return signature;
	}

	public boolean isSignatureValid(PublicKey key) {
		return false;
	}
}
