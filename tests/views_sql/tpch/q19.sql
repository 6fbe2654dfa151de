select sum(l_extendedprice * (1 - l_discount)) as revenue from tpch.lineitem, tpch.part where (p_partkey =
l_partkey and p_brand = 'Brand#12' and p_container in ('SM CASE', 'SM BOX') and l_quantity >= 1 and
l_quantity <= 31 and p_size between 1 and 50 and l_shipmode in ('AIR', 'MAIL')) or (p_partkey =
l_partkey and p_brand = 'Brand#23' and p_container in ('MED BAG', 'SM BOX') and l_quantity >= 10 and
l_quantity <= 40 and p_size between 1 and 45 and l_shipmode in ('AIR', 'SHIP'))
