"""Descriptions of the configs in `definitions_security`."""

TEXTS = """
authorizer.class.name The authorizer plug-in; empty allows everything.
connections.max.reauth.ms A connection must reauthenticate after this time; 0 means no limit.
security.providers Java security provider classes.
principal.builder.class Class that builds a principal from an authenticated connection.
ssl.client.auth Whether client certificates are required, requested or not used.
ssl.principal.mapping.rules Rules that map the name in a certificate to a principal.
ssl.allow.dn.changes Whether a new certificate may have another distinguished name.
ssl.allow.san.changes Whether a new certificate may have other subject alternative names.
ssl.protocol Preferred TLS version.
ssl.provider Java security provider for TLS.
ssl.enabled.protocols Accepted TLS versions.
ssl.keystore.type Key store format: JKS, PKCS12 or PEM.
ssl.keystore.location Path of the key store.
ssl.keystore.password Password of the key store.
ssl.key.password Password of the private key.
ssl.keystore.key Private key as PEM, instead of a file.
ssl.keystore.certificate.chain Certificate chain as PEM, instead of a file.
ssl.truststore.type Trust store format: JKS, PKCS12 or PEM.
ssl.truststore.location Path of the trust store.
ssl.truststore.password Password of the trust store.
ssl.truststore.certificates Trusted certificates as PEM, instead of a file.
ssl.keymanager.algorithm Key manager algorithm of a Java broker.
ssl.trustmanager.algorithm Trust manager algorithm of a Java broker.
ssl.endpoint.identification.algorithm Algorithm for host name verification; empty disables it.
ssl.secure.random.implementation Secure random implementation of a Java broker.
ssl.cipher.suites Accepted cipher suites; empty means the default ones.
ssl.engine.factory.class A plug-in that creates TLS engines.
delegation.token.secret.key Secret for signing delegation tokens, the same on all nodes.
delegation.token.max.lifetime.ms Maximum lifetime of a delegation token, including renewals.
delegation.token.expiry.time.ms Validity of a delegation token until it must be renewed.
delegation.token.expiry.check.interval.ms How often delegation tokens are checked for expiration.
sasl.mechanism.inter.broker.protocol SASL mechanism between brokers.
sasl.enabled.mechanisms SASL mechanisms that clients may use.
sasl.server.max.receive.size Maximum message size during authentication.
sasl.server.callback.handler.class A plug-in that verifies client credentials.
sasl.kerberos.principal.to.local.rules Rules that map a Kerberos principal to a Kafka principal.
sasl.jaas.config Login module and its options in JAAS format.
sasl.client.callback.handler.class A plug-in for connections that the broker opens.
sasl.login.class A plug-in that performs the login.
sasl.login.callback.handler.class A plug-in that supplies login credentials.
sasl.kerberos.service.name Kerberos service name of the brokers.
sasl.kerberos.kinit.cmd Path of kinit.
sasl.kerberos.ticket.renew.window.factor A Kerberos ticket is renewed after this share of its lifetime.
sasl.kerberos.ticket.renew.jitter Random variation of the renewal time.
sasl.kerberos.min.time.before.relogin Minimum time between two Kerberos logins.
sasl.login.refresh.window.factor A credential is refreshed after this share of its lifetime.
sasl.login.refresh.window.jitter Random variation of the refresh time.
sasl.login.refresh.min.period.seconds Minimum time before a credential is refreshed.
sasl.login.refresh.buffer.seconds A credential is refreshed at least this long before it expires.
sasl.login.connect.timeout.ms Connection timeout to an OAuth provider.
sasl.login.read.timeout.ms Read timeout of an OAuth provider.
sasl.login.retry.backoff.max.ms Maximum backoff before a login is retried.
sasl.login.retry.backoff.ms Initial backoff before a login is retried.
sasl.oauthbearer.jwt.retriever.class Class that retrieves OAuth tokens.
sasl.oauthbearer.jwt.validator.class Class that validates OAuth tokens.
sasl.oauthbearer.scope Scope of requested OAuth tokens.
sasl.oauthbearer.client.credentials.client.id Client id for requesting OAuth tokens.
sasl.oauthbearer.client.credentials.client.secret Secret of that client id.
sasl.oauthbearer.assertion.algorithm Signature algorithm of OAuth assertions.
sasl.oauthbearer.assertion.claim.aud Audience of OAuth assertions.
sasl.oauthbearer.assertion.claim.exp.seconds Validity of OAuth assertions.
sasl.oauthbearer.assertion.claim.iss Issuer of OAuth assertions.
sasl.oauthbearer.assertion.claim.jti.include Whether OAuth assertions include a unique id.
sasl.oauthbearer.assertion.claim.nbf.seconds How far in the past the validity of OAuth assertions starts.
sasl.oauthbearer.assertion.claim.sub Subject of OAuth assertions.
sasl.oauthbearer.assertion.file File with a prepared OAuth assertion.
sasl.oauthbearer.assertion.private.key.file File with the key that signs OAuth assertions.
sasl.oauthbearer.assertion.private.key.passphrase Passphrase of that key.
sasl.oauthbearer.assertion.template.file File with additional claims of OAuth assertions.
sasl.oauthbearer.scope.claim.name Name of the token claim with the scope.
sasl.oauthbearer.sub.claim.name Name of the token claim with the subject.
sasl.oauthbearer.token.endpoint.url URL for requesting OAuth tokens.
sasl.oauthbearer.jwks.endpoint.url URL of the keys for verifying OAuth tokens.
sasl.oauthbearer.jwks.endpoint.refresh.ms How often those keys are fetched.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms Initial backoff after a failed fetch of those keys.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms Maximum backoff after failed fetches of those keys.
sasl.oauthbearer.clock.skew.seconds Maximum clock difference between brokers and OAuth providers.
sasl.oauthbearer.expected.audience Accepted audiences of OAuth tokens.
sasl.oauthbearer.expected.issuer Accepted issuer of OAuth tokens.
"""
