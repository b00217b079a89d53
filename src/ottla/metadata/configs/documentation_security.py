"""Sentences about a broker's configs: TLS, SASL and authorization."""

TEXTS = """
authorizer.class.name What decides who may do what; empty lets everyone.
connections.max.reauth.ms How long an authenticated connection lives before its client must authenticate again; 0 sets no limit.
security.providers Classes that add cryptography to a Java broker.
principal.builder.class The class that makes a principal from what a client proved of itself.
ssl.client.auth Whether clients must, may or need not show a certificate.
ssl.principal.mapping.rules Rules that turn the name in a certificate into a principal.
ssl.allow.dn.changes Whether a new key may have another name than the one before.
ssl.allow.san.changes Whether a new key may have other alternative names than the one before.
ssl.protocol The TLS version that is preferred.
ssl.provider The security provider of a Java broker that does TLS.
ssl.enabled.protocols The TLS versions that are accepted.
ssl.keystore.type The format of the key store: JKS, PKCS12 or PEM.
ssl.keystore.location The file of the key store.
ssl.keystore.password The password of the key store.
ssl.key.password The password of the private key.
ssl.keystore.key The private key itself, as PEM, in place of a file.
ssl.keystore.certificate.chain The certificate and those that signed it, as PEM, in place of a file.
ssl.truststore.type The format of the trust store: JKS, PKCS12 or PEM.
ssl.truststore.location The file of the trust store.
ssl.truststore.password The password of the trust store.
ssl.truststore.certificates The trusted certificates themselves, as PEM, in place of a file.
ssl.keymanager.algorithm The algorithm of a Java broker's key manager.
ssl.trustmanager.algorithm The algorithm of a Java broker's trust manager.
ssl.endpoint.identification.algorithm How the name in a server's certificate is checked; empty does not check it.
ssl.secure.random.implementation The source of randomness of a Java broker's TLS.
ssl.cipher.suites The cipher suites that are accepted; empty accepts the default ones.
ssl.engine.factory.class A plug-in that makes TLS engines.
delegation.token.secret.key The secret with which delegation tokens are made and checked, the same on all nodes.
delegation.token.max.lifetime.ms After this time a delegation token cannot be renewed any more.
delegation.token.expiry.time.ms How long a delegation token is valid before it must be renewed.
delegation.token.expiry.check.interval.ms How often delegation tokens are looked at that have expired.
sasl.mechanism.inter.broker.protocol The SASL mechanism between brokers.
sasl.enabled.mechanisms The SASL mechanisms that clients may use.
sasl.server.max.receive.size The largest message that is read while a client authenticates.
sasl.server.callback.handler.class A plug-in that checks what clients prove of themselves.
sasl.kerberos.principal.to.local.rules Rules that turn the name in a Kerberos ticket into a principal.
sasl.jaas.config The login module and its options, in JAAS form.
sasl.client.callback.handler.class A plug-in for the broker's own connections.
sasl.login.class A plug-in that logs in.
sasl.login.callback.handler.class A plug-in that supplies what a login needs.
sasl.kerberos.service.name The Kerberos service that brokers run as.
sasl.kerberos.kinit.cmd Where kinit is.
sasl.kerberos.ticket.renew.window.factor A Kerberos ticket is renewed after this share of its life.
sasl.kerberos.ticket.renew.jitter How much that moment varies at random.
sasl.kerberos.min.time.before.relogin The shortest pause between two Kerberos logins.
sasl.login.refresh.window.factor A credential is refreshed after this share of its life.
sasl.login.refresh.window.jitter How much the moment of a refresh varies at random.
sasl.login.refresh.min.period.seconds A credential is kept for at least this long before it is refreshed.
sasl.login.refresh.buffer.seconds A credential is refreshed at the latest this long before it expires.
sasl.login.connect.timeout.ms How long connecting to an OAuth provider may take.
sasl.login.read.timeout.ms How long an answer of an OAuth provider may take.
sasl.login.retry.backoff.max.ms The longest pause before a login is tried again.
sasl.login.retry.backoff.ms The first pause before a login is tried again.
sasl.oauthbearer.jwt.retriever.class The class that gets OAuth tokens.
sasl.oauthbearer.jwt.validator.class The class that checks OAuth tokens.
sasl.oauthbearer.scope The scope that an OAuth token is asked for with.
sasl.oauthbearer.client.credentials.client.id The client id with which OAuth tokens are asked for.
sasl.oauthbearer.client.credentials.client.secret The secret that belongs to that client id.
sasl.oauthbearer.assertion.algorithm With what an OAuth assertion is signed.
sasl.oauthbearer.assertion.claim.aud The audience that an OAuth assertion names.
sasl.oauthbearer.assertion.claim.exp.seconds How long an OAuth assertion is valid.
sasl.oauthbearer.assertion.claim.iss The issuer that an OAuth assertion names.
sasl.oauthbearer.assertion.claim.jti.include Whether an OAuth assertion carries an id of its own.
sasl.oauthbearer.assertion.claim.nbf.seconds How far back the beginning of an OAuth assertion's life is dated.
sasl.oauthbearer.assertion.claim.sub The subject that an OAuth assertion names.
sasl.oauthbearer.assertion.file A file that holds a finished OAuth assertion.
sasl.oauthbearer.assertion.private.key.file The file of the key that signs OAuth assertions.
sasl.oauthbearer.assertion.private.key.passphrase The passphrase of that key.
sasl.oauthbearer.assertion.template.file A file with further parts of OAuth assertions.
sasl.oauthbearer.scope.claim.name Which claim of a token holds the scope.
sasl.oauthbearer.sub.claim.name Which claim of a token holds the subject.
sasl.oauthbearer.token.endpoint.url Where OAuth tokens are asked for.
sasl.oauthbearer.jwks.endpoint.url Where the keys are found that check OAuth tokens.
sasl.oauthbearer.jwks.endpoint.refresh.ms How often those keys are fetched again.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms The first pause before those keys are asked for again after a failure.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms The longest pause before those keys are asked for again after a failure.
sasl.oauthbearer.clock.skew.seconds How far the clocks of brokers and OAuth providers may differ.
sasl.oauthbearer.expected.audience The audiences of which a token must name one.
sasl.oauthbearer.expected.issuer The issuer that a token must name.
"""
