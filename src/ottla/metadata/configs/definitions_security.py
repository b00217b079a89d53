"""Broker configs of TLS, SASL and authorization."""

TLS = """
# TLS, principals, tokens
authorizer.class.name                     string   low    static  *         ""
connections.max.reauth.ms                 long     medium static  *         0
security.providers                        string   low    static  *         null
principal.builder.class                   class    medium broker  *         org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
ssl.client.auth                           string   medium broker  required|requested|none none
ssl.principal.mapping.rules               string   low    static  *         DEFAULT
ssl.allow.dn.changes                      bool     low    static  *         false
ssl.allow.san.changes                     bool     low    static  *         false
ssl.protocol                              string   medium broker  *         TLSv1.3
ssl.provider                              string   medium broker  *         null
ssl.enabled.protocols                     list     medium broker  []        TLSv1.2,TLSv1.3
ssl.keystore.type                         string   medium broker  *         JKS
ssl.keystore.location                     string   medium broker  *         null
ssl.keystore.password                     password medium broker  *         null
ssl.key.password                          password medium broker  *         null
ssl.keystore.key                          password medium broker  *         null
ssl.keystore.certificate.chain            password medium broker  *         null
ssl.truststore.type                       string   medium broker  *         JKS
ssl.truststore.location                   string   medium broker  *         null
ssl.truststore.password                   password medium broker  *         null
ssl.truststore.certificates               password medium broker  *         null
ssl.keymanager.algorithm                  string   medium broker  *         SunX509
ssl.trustmanager.algorithm                string   medium broker  *         PKIX
ssl.endpoint.identification.algorithm     string   low    broker  *         https
ssl.secure.random.implementation          string   low    broker  *         null
ssl.cipher.suites                         list     medium broker  []        ""
ssl.engine.factory.class                  class    low    broker  *         null
delegation.token.secret.key               password medium static  *         null
delegation.token.max.lifetime.ms          long     medium static  1..       604800000
delegation.token.expiry.time.ms           long     medium static  1..       86400000
delegation.token.expiry.check.interval.ms long     low    static  1..       3600000
"""  # noqa: E501

SASL = """
# SASL
sasl.server.max.receive.size                        int      medium static  *         524288
sasl.mechanism.inter.broker.protocol                string   medium broker  *         GSSAPI
sasl.enabled.mechanisms                             list     medium broker  []        GSSAPI
sasl.server.callback.handler.class                  class    medium static  *         null
sasl.kerberos.principal.to.local.rules              list     medium broker  []        DEFAULT
sasl.jaas.config                                    password medium broker  *         null
sasl.client.callback.handler.class                  class    medium static  *         null
sasl.login.class                                    class    medium static  *         null
sasl.login.callback.handler.class                   class    medium static  *         null
sasl.kerberos.service.name                          string   medium broker  *         null
sasl.kerberos.kinit.cmd                             string   medium broker  *         /usr/bin/kinit
sasl.kerberos.ticket.renew.window.factor            double   medium broker  *         0.8
sasl.kerberos.ticket.renew.jitter                   double   medium broker  *         0.05
sasl.kerberos.min.time.before.relogin               long     medium broker  *         60000
sasl.login.refresh.window.factor                    double   medium broker  *         0.8
sasl.login.refresh.window.jitter                    double   medium broker  *         0.05
sasl.login.refresh.min.period.seconds               short    medium broker  *         60
sasl.login.refresh.buffer.seconds                   short    medium broker  *         300
sasl.login.connect.timeout.ms                       int      low    static  *         null
sasl.login.read.timeout.ms                          int      low    static  *         null
sasl.login.retry.backoff.max.ms                     long     low    static  *         10000
sasl.login.retry.backoff.ms                         long     low    static  *         100
sasl.oauthbearer.jwt.retriever.class                class    medium static  *         org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
sasl.oauthbearer.jwt.validator.class                class    medium static  *         org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
sasl.oauthbearer.scope                              string   medium static  *         null
sasl.oauthbearer.client.credentials.client.id       string   medium static  *         null
sasl.oauthbearer.client.credentials.client.secret   password medium static  *         null
sasl.oauthbearer.assertion.algorithm                string   medium static  ~ES256|RS256 RS256
sasl.oauthbearer.assertion.claim.aud                string   medium static  *         null
sasl.oauthbearer.assertion.claim.exp.seconds        int      low    static  0..86400  300
sasl.oauthbearer.assertion.claim.iss                string   medium static  *         null
sasl.oauthbearer.assertion.claim.jti.include        bool     medium static  *         false
sasl.oauthbearer.assertion.claim.nbf.seconds        int      low    static  0..3600   60
sasl.oauthbearer.assertion.claim.sub                string   medium static  *         null
sasl.oauthbearer.assertion.file                     string   medium static  *         null
sasl.oauthbearer.assertion.private.key.file         string   medium static  *         null
sasl.oauthbearer.assertion.private.key.passphrase   password medium static  *         null
sasl.oauthbearer.assertion.template.file            string   medium static  *         null
sasl.oauthbearer.scope.claim.name                   string   low    static  *         scope
sasl.oauthbearer.sub.claim.name                     string   low    static  *         sub
sasl.oauthbearer.token.endpoint.url                 string   medium static  *         null
sasl.oauthbearer.jwks.endpoint.url                  string   medium static  *         null
sasl.oauthbearer.jwks.endpoint.refresh.ms           long     low    static  *         3600000
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms     long     low    static  *         100
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long     low    static  *         10000
sasl.oauthbearer.clock.skew.seconds                 int      low    static  *         30
sasl.oauthbearer.expected.audience                  list     low    static  []        ""
sasl.oauthbearer.expected.issuer                    string   low    static  *         null
"""  # noqa: E501
