import com.mojang.authlib.properties.Property;
import com.mojang.authlib.yggdrasil.YggdrasilMinecraftSessionService;
import com.mojang.authlib.yggdrasil.YggdrasilServicesKeyInfo;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/**
 * Does what a game does with authlib. Each line of standard input is a command with its arguments,
 * separated by tabs, and each line of standard output its result. authlib-injector rewrites the
 * addresses and authlib's classes.
 */
public final class Game {
	private Game() {}

	public static void main(String[] args) throws IOException {
		PrintStream out = new PrintStream(System.out, true, "UTF-8");
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
		for (String line = in.readLine(); line != null; line = in.readLine()) {
			out.println(run(line.split("\t", -1)));
		}
	}

	private static String run(String[] command) throws IOException {
		switch (command[0]) {
			case "request": // service, path, token, body; a POST if there is a body
				return request(service(command[1]) + command[2], command[3], command[4]);
			case "verify": // name, value, signature
				Property property = new Property(command[1], command[2], command[3]);
				return property.isSignatureValid(null) + " " + new YggdrasilServicesKeyInfo().validateProperty(property);
			case "allowed": // address of a texture
				return String.valueOf(YggdrasilMinecraftSessionService.isWhitelistedDomain(command[1]));
			default:
				throw new IllegalArgumentException(command[0]);
		}
	}

	private static String service(String name) {
		switch (name) {
			case "authserver":
				return "https://authserver.mojang.com";
			case "sessionserver":
				return "https://sessionserver.mojang.com";
			case "api":
				return "https://api.mojang.com";
			case "minecraftservices":
				return "https://api.minecraftservices.com";
			case "skins":
				return "http://skins.minecraft.net";
			default:
				throw new IllegalArgumentException(name);
		}
	}

	/** Returns the status, and the body in Base64. */
	private static String request(String address, String token, String body) throws IOException {
		HttpURLConnection connection = (HttpURLConnection) new URL(address).openConnection();
		if (!token.isEmpty()) {
			connection.setRequestProperty("Authorization", "Bearer " + token);
		}
		if (!body.isEmpty()) {
			connection.setDoOutput(true);
			connection.setRequestProperty("Content-Type", "application/json; charset=utf-8");
			try (OutputStream out = connection.getOutputStream()) {
				out.write(body.getBytes(StandardCharsets.UTF_8));
			}
		}
		int status = connection.getResponseCode();
		try (InputStream in = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
			return status + " " + (in == null ? "" : Base64.getEncoder().encodeToString(in.readAllBytes()));
		}
	}
}
